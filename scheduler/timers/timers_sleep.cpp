#include "scheduler/timers/timers_sleep.hpp"

namespace weft::scheduler {

bool Timers::add_sleep(Timer& timer, Deadline deadline) noexcept {
  fibers::Fiber& fiber = *timer.waker.fiber();
  const detail::SpinGuard guard(lock_);
  const std::uint64_t tick = tick_for(deadline);
  if (follow(fiber, tick)) return false;
  timer.home = this;
  timer.tick = tick;
  timer.leads = true;
  fiber.next = nullptr;
  latest_[tick % kLatest] = {tick, &fiber};
  return insert(timer);
}

}  // namespace weft::scheduler

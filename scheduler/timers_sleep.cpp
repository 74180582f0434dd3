// The part of the wheel that knows fibers. By itself, because models include the other.
#include <utility>

#include "fibers/fiber.hpp"
#include "scheduler/timers.hpp"

namespace weft::scheduler {

bool Timers::add_sleep(Timer& timer, fibers::Fiber& fiber, Deadline deadline) noexcept {
  fiber.next = nullptr;
  const detail::SpinGuard guard(lock_);
  const std::uint64_t tick = tick_for(deadline);
  Latest& latest = latest_[tick % kLatest];
  if (latest.tick == tick) {
    std::exchange(latest.fiber, &fiber)->next = &fiber;
    return false;
  }
  timer.home = this;
  timer.tick = tick;
  timer.waker = detail::Waker::of_fiber(&fiber);
  timer.leads = true;
  latest = {tick, &fiber};
  return insert(timer);
}

}  // namespace weft::scheduler

// The part of the wheel that uses fibers; in a separate file, because models include only the other
// part.
#include <utility>
#include <weft/detail/invariant.hpp>

#include "fibers/fiber.hpp"
#include "scheduler/timers/timers.hpp"

namespace weft::scheduler {

inline bool Timers::follow(fibers::Fiber& fiber, std::uint64_t tick) noexcept {
  Latest& latest = latest_[tick % kLatest];
  if (latest.tick != tick) return false;
  WEFT_INVARIANT(latest.fiber->next == nullptr, "Timers I4: the latest sleeper ends its chain");
  fiber.next = nullptr;
  std::exchange(latest.fiber, &fiber)->next = &fiber;
  return true;
}

bool Timers::try_follow(fibers::Fiber& fiber, Deadline deadline) noexcept {
  // Reading the clock of a simulated host needs a call; add_sleep() makes it.
  if (detail::simulated() != nullptr || !lock_.try_lock()) return false;
  const bool follows = follow(fiber, tick_after(deadline.nanoseconds()));
  lock_.unlock();
  return follows;
}

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

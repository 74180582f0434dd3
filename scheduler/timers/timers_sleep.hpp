// The part of the wheel that chains sleeping fibers. It is in a separate file, because models
// include only the other part.
#pragma once

#include <utility>
#include <weft/detail/invariant.hpp>
#include <weft/detail/simulated.hpp>

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

inline bool Timers::try_follow(fibers::Fiber& fiber, Deadline deadline) noexcept {
  // Reading a simulated host's clock requires a call, which add_sleep() makes.
  if (detail::simulated() != nullptr || !lock_.try_lock()) return false;
  const bool follows = follow(fiber, tick_after(deadline.nanoseconds()));
  lock_.unlock();
  return follows;
}

}  // namespace weft::scheduler

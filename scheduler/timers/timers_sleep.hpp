// The functions of the timing wheel that chain sleeping fibers. They are in a separate file,
// because the model checks include only the other functions.
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
  // In a simulation, this function must not convert the deadline, because that would need a
  // function call. The caller then calls add_sleep() instead.
  if (detail::simulated() != nullptr || !lock_.try_lock()) return false;
  const bool follows = follow(fiber, tick_after(deadline.nanoseconds()));
  lock_.unlock();
  return follows;
}

}  // namespace weft::scheduler

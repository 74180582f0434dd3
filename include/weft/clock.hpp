// The monotonic clock that a program and its simulation share.
#pragma once

#include <chrono>
#include <cstdint>
#include <weft/deadline.hpp>

namespace weft {

// A standard clock: std::chrono::steady_clock, except in a simulation (weft/sim.hpp), where its
// time is the simulation's. Code that measures durations by it can be simulated unchanged.
// From anywhere; no call parks, throws or synchronizes.
struct Clock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<Clock, duration>;
  static constexpr bool is_steady = true;  // NOLINT(readability-identifier-naming): std's name.

  // The time since the clock's beginning.
  [[nodiscard]] static time_point now() noexcept {
    return time_point(duration(Deadline::now_nanoseconds()));
  }
};

}  // namespace weft

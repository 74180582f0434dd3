// The monotonic clock that a program and its simulation share.
#pragma once

#include <chrono>
#include <cstdint>
#include <weft/deadline.hpp>
#include <weft/detail/simulated.hpp>

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

// The same of the clock that shows the date: std::chrono::system_clock, except in a simulation,
// where each host's may be wrong, and be set. From anywhere; no call parks, throws or synchronizes.
struct WallClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<WallClock, duration>;
  static constexpr bool is_steady = false;  // NOLINT(readability-identifier-naming): std's name.

  // The time since 1970-01-01 00:00:00 UTC.
  [[nodiscard]] static time_point now() noexcept {
    if (const detail::Simulated* simulation = detail::simulated()) [[unlikely]]
      return time_point(duration(simulation->wall_clock()));
    return time_point(std::chrono::system_clock::now().time_since_epoch());
  }
  // For std::chrono::clock_cast() and calendars.
  [[nodiscard]] static std::chrono::sys_time<duration> to_sys(time_point time) noexcept {
    return std::chrono::sys_time<duration>(time.time_since_epoch());
  }
  // The other way.
  [[nodiscard]] static time_point from_sys(std::chrono::sys_time<duration> time) noexcept {
    return time_point(time.time_since_epoch());
  }
};

}  // namespace weft

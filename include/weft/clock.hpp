// Clocks that read the simulated time in a simulation.
// Context: plain value; no call parks or throws.
#pragma once

#include <chrono>
#include <cstdint>
#include <weft/deadline.hpp>
#include <weft/detail/simulated.hpp>

namespace weft {

// A std::chrono clock that reads steady_clock or, in a simulation (weft/sim.hpp), the simulated
// clock. Code that measures durations with this clock runs unchanged in a simulation.
struct Clock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<Clock, duration>;
  static constexpr bool is_steady = true;  // NOLINT(readability-identifier-naming): std's name.

  // Returns the current time of the clock.
  [[nodiscard]] static time_point now() noexcept {
    return time_point(duration(Deadline::now_nanoseconds()));
  }
};

// A std::chrono clock that reads system_clock or, in a simulation, the clock of the simulated host,
// which may be wrong and may be adjusted.
struct WallClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<WallClock, duration>;
  static constexpr bool is_steady = false;  // NOLINT(readability-identifier-naming): std's name.

  // Returns the current time, counted from 1970-01-01 00:00:00 UTC.
  [[nodiscard]] static time_point now() noexcept {
    if (const detail::Simulated* simulation = detail::simulated()) [[unlikely]]
      return time_point(duration(simulation->wall_clock()));
    return time_point(std::chrono::system_clock::now().time_since_epoch());
  }
  // Converts `time` to a system time, for std::chrono::clock_cast() and calendars.
  [[nodiscard]] static std::chrono::sys_time<duration> to_sys(time_point time) noexcept {
    return std::chrono::sys_time<duration>(time.time_since_epoch());
  }
  // Converts a system time to a time of this clock.
  [[nodiscard]] static time_point from_sys(std::chrono::sys_time<duration> time) noexcept {
    return time_point(time.time_since_epoch());
  }
};

}  // namespace weft

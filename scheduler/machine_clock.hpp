// The clock of the machine that runs the workers.
#pragma once

#include <chrono>
#include <cstdint>
#include <weft/deadline.hpp>
#include <weft/detail/simulated.hpp>

namespace weft::scheduler {

// Returns the time of the system's monotonic clock in nanoseconds, even in a simulation.
[[nodiscard]] inline std::int64_t system_now() noexcept {
  return std::chrono::nanoseconds(Deadline::Clock::now().time_since_epoch()).count();
}

// Returns the machine's time in nanoseconds. Outside a simulation, this is the clock that Deadline
// uses. In a simulation, all hosts share this clock, and machine_time() converts deadlines to it.
[[nodiscard]] inline std::int64_t machine_now() noexcept {
  if (const detail::Simulated* simulation = detail::simulated()) [[unlikely]]
    return simulation->machine_now();
  return system_now();
}

// Converts a deadline of the calling fiber to the time of machine_now().
[[nodiscard]] inline std::int64_t machine_time(Deadline deadline) noexcept {
  if (const detail::Simulated* simulation = detail::simulated()) [[unlikely]]
    return simulation->machine_time(deadline.nanoseconds());
  return deadline.nanoseconds();
}

}  // namespace weft::scheduler

// The clock of the machine that runs the workers.
#pragma once

#include <chrono>
#include <cstdint>
#include <weft/deadline.hpp>
#include <weft/detail/simulated.hpp>

namespace weft::scheduler {

// Nanoseconds of the system's monotonic clock, also in a simulation.
[[nodiscard]] inline std::int64_t system_now() noexcept {
  return std::chrono::nanoseconds(Deadline::Clock::now().time_since_epoch()).count();
}

// Nanoseconds. This is the clock of Deadline, except in a simulation, where each host has its own
// clock and all hosts share one worker.
[[nodiscard]] inline std::int64_t machine_now() noexcept {
  if (const detail::Simulated* simulation = detail::simulated()) [[unlikely]]
    return simulation->machine_now();
  return system_now();
}

// Returns when a deadline of the calling fiber is due by that clock.
[[nodiscard]] inline std::int64_t machine_time(Deadline deadline) noexcept {
  if (const detail::Simulated* simulation = detail::simulated()) [[unlikely]]
    return simulation->machine_time(deadline.nanoseconds());
  return deadline.nanoseconds();
}

}  // namespace weft::scheduler

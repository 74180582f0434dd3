// Gives a simulation (weft/sim.hpp) its own clock and random numbers.
#pragma once

#include <cstdint>
#include <weft/detail/atomic.hpp>

namespace weft::detail {

// Holds functions of the simulation that runs in this process. On the simulation's own thread the
// clock functions return simulated times, and on all other threads real times.
struct Simulated {
  // Returns whether the caller runs on the simulation's own thread.
  bool (*is_inside)() noexcept;
  // Returns the monotonic time of the calling fiber's host, in nanoseconds.
  std::int64_t (*now)() noexcept;
  // machine_now() returns the monotonic time of the machine that runs all hosts, in nanoseconds.
  // machine_time() converts `host_time`, a time on the clock of now(), to the machine's time.
  std::int64_t (*machine_now)() noexcept;
  std::int64_t (*machine_time)(std::int64_t host_time) noexcept;
  // Returns the nanoseconds since 1970 according to the wall clock of the calling fiber's host.
  std::int64_t (*wall_clock)() noexcept;
  // Returns 64 random bits that derive from the simulation's seed. Requires is_inside().
  std::uint64_t (*random)() noexcept;
};

#ifdef WEFT_MODEL

[[nodiscard]] constexpr const Simulated* simulated() noexcept { return nullptr; }

#else

// Null while no simulation is running. Relaxed: it points only to constants, which never change.
inline constinit Atomic<const Simulated*> installed_simulation{nullptr};

// Returns the simulation's functions; null while no simulation is running. Any fiber or thread may
// call this function, which never parks.
[[nodiscard, gnu::always_inline]] inline const Simulated* simulated() noexcept {
  return installed_simulation.load(relaxed);
}

#endif

// Returns whether the caller is part of a simulation. Never parks; any thread may call it.
[[nodiscard]] inline bool is_simulated() noexcept {
  const Simulated* simulation = simulated();
  return simulation != nullptr && simulation->is_inside();
}

}  // namespace weft::detail

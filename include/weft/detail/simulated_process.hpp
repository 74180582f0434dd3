// The processes of a simulation (weft/sim.hpp), which share the real process and its lists.
#pragma once

#include <cstdint>

namespace weft::detail {

#ifdef WEFT_MODEL

[[nodiscard]] constexpr std::uint64_t simulated_process() noexcept { return 0; }

#else

// Returns the number of the calling fiber's process in a simulation, which no other process of any
// simulation has; 0 outside. The upper 32 bits are the number of the simulation. The objects of a
// simulated process outlive it, so the lists of a process must omit them. Any caller; never parks.
[[nodiscard]] std::uint64_t simulated_process() noexcept;

#endif

}  // namespace weft::detail

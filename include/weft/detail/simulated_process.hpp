// Numbers the simulated processes of weft/sim.hpp, all of which run in one real process.
#pragma once

#include <cstdint>

namespace weft::detail {

#ifdef WEFT_MODEL

[[nodiscard]] constexpr std::uint64_t simulated_process() noexcept { return 0; }

#else

// Returns the number of the calling fiber's simulated process, which is unique among all
// simulations; 0 outside of a simulation. The upper 32 bits are the number of the simulation. All
// simulated processes, even ended ones, keep objects in the same lists, so a reader of a list must
// skip the objects of other processes. Any thread may call this function, which never parks.
[[nodiscard]] std::uint64_t simulated_process() noexcept;

#endif

}  // namespace weft::detail

// Numbers the processes of a simulation (weft/sim.hpp), which share the real process and its lists.
#pragma once

#include <cstdint>

namespace weft::detail {

#ifdef WEFT_MODEL

[[nodiscard]] constexpr std::uint64_t simulated_process() noexcept { return 0; }

#else

// Returns the number of the calling fiber's simulated process, which is unique among all
// simulations; 0 outside of a simulation. The upper 32 bits are the number of the simulation. The
// objects of a simulated process outlive it, so a list of objects must contain only the objects of
// the caller's process. Any thread may call this function, which never parks.
[[nodiscard]] std::uint64_t simulated_process() noexcept;

#endif

}  // namespace weft::detail

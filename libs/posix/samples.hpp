// Calls that this library does not see, as the runtime's monitor finds them.
#pragma once

#include <vector>
#include <weft/posix.hpp>

namespace weft::posix {

// Begins to listen to monitors.
void listen_to_monitors() noexcept;
// Adds what they have found; a row for each call, reason and place. Throws std::bad_alloc.
void add_samples(std::vector<BlockedCalls>& calls);
// In the child of a fork, where no thread holds the lock.
void forget_samples() noexcept;

}  // namespace weft::posix

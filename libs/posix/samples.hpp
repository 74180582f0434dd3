// Calls that this library does not intercept, as the runtime's monitor finds them.
#pragma once

#include <vector>
#include <weft/posix.hpp>

namespace weft::posix {

// Registers a listener with the monitors.
void listen_to_monitors() noexcept;
// Appends the findings: a row for each call, reason and place. Throws std::bad_alloc.
void add_samples(std::vector<BlockedCalls>& calls);
// Makes the lock usable in the child of a fork, where no thread holds it.
void forget_samples() noexcept;

}  // namespace weft::posix

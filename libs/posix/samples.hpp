// Calls that this library does not intercept, as the runtime's monitor or the diagnostic mode finds
// them.
#pragma once

#include <chrono>
#include <span>
#include <vector>
#include <weft/posix.hpp>

namespace weft::posix {

// Registers a listener with the monitors.
void listen_to_monitors() noexcept;
// Adds a call that has ended, by its return addresses as in StallListener::begin().
void add_sample(std::span<const void* const> calls, std::chrono::nanoseconds took) noexcept;
// Appends the findings: a row for each call, reason and place. Throws std::bad_alloc.
void add_samples(std::vector<BlockedCalls>& calls);
// Makes the lock usable in the child of a fork, where no thread holds it.
void forget_samples() noexcept;

}  // namespace weft::posix

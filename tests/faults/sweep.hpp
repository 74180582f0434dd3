// Injects one fault after the other, until each call has failed once.
//
// A scenario runs three times in a separate process. In the second run, the n-th call of a kind
// fails. This run may end with a documented exception; it must not hang, end the process, or leak
// anything. The third run must succeed like the first. n grows until the scenario makes fewer such
// calls.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <string>
#include <system_error>
#include <vector>

#include "tests/faults/faults.hpp"

namespace weft::test {

using Scenario = void (*)();

// The errors with which a scenario may end instead of returning. It may also throw std::bad_alloc,
// or a std::system_error with the fault's own number.
using Documented = std::vector<std::error_code>;

void sweep(Scenario scenario, std::initializer_list<Fault> faults,
           const Documented& documented = {});
// Does the same for a scenario that runs in a fiber of a runtime with one worker. The runtime's
// start has no faults.
void sweep_in_runtime(Scenario scenario, std::initializer_list<Fault> faults,
                      const Documented& documented = {});

// Runs the scenario once in a separate process, with the faults that the scenario arms. After each
// call of `still_alive`, it must end, or make the next such call, within `seconds`. It must leave
// nothing behind that its first run, without faults, did not.
void soak(void (*scenario)(bool with_faults));
void still_alive(unsigned seconds) noexcept;

// Returns the number of open descriptors plus three; callers compare two results.
[[nodiscard]] std::size_t count_descriptors();

// Ends a scenario with the error, which must be documented.
void expect_none(std::error_code error);
// Checks a condition that must be true in every run; otherwise ends the process.
void demand(bool condition, const char* sentence);

}  // namespace weft::test

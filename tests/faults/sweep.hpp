// One fault after the other, until none is left.
//
// A scenario is run in a process of its own: once as it is; then with the n-th call of a kind
// failing; then again as it is. The second run may end with an exception that is documented; it
// must not hang, end the process, or leave anything behind; and the third must do all that the
// first did. n grows until the scenario makes fewer such calls.
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

// The ends that a scenario may have, besides its return: std::bad_alloc, and a std::system_error
// whose code is in here or stands for the fault's own number.
using Documented = std::vector<std::error_code>;

void sweep(Scenario scenario, std::initializer_list<Fault> faults,
           const Documented& documented = {});
// The same for a scenario that is played in a fiber of a runtime of one worker, whose own start is
// not made to fail.
void sweep_in_runtime(Scenario scenario, std::initializer_list<Fault> faults,
                      const Documented& documented = {});

// Plays the scenario once, in a process of its own, with the faults that it arms itself. It must
// end within `seconds` after each call of `still_alive`, and leave nothing behind that its first
// run, without faults, did not.
void soak(void (*scenario)(bool with_faults));
void still_alive(unsigned seconds) noexcept;

// How many the process has open, and three more: only differences tell.
[[nodiscard]] std::size_t count_descriptors();

// For scenarios: ends them with the error, as what is documented.
void expect_none(std::error_code error);
// A condition that must hold in every run; the process ends otherwise.
void demand(bool condition, const char* sentence);

}  // namespace weft::test

// Says why a test case cannot run here. A case that returns early without that would look passed.
#pragma once

#include <doctest/doctest.h>

namespace weft::test {

// Prints that the running case is skipped, and why. `./check` lists the reasons after each step.
inline void skip(const char* why) { MESSAGE("skipped: ", doctest::String(why)); }

}  // namespace weft::test

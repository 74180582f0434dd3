// The headers that most tests include, read once for each of the larger test programs in builds
// that share no objects with others.
#pragma once

#include "tests/support/fiber_test.hpp"

// Includes durations, time points and clocks. Deadlines do not need the calendar and stream
// functions of <chrono>, which would add a quarter of <thread>'s compile time.
#pragma once

#include <version>

#if defined(__GLIBCXX__) && __has_include(<bits/chrono.h>)
#include <bits/chrono.h>  // IWYU pragma: export
#else
#include <chrono>  // IWYU pragma: export
#endif

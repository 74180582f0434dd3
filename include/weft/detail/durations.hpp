// Includes durations, time points and clocks. Deadlines do not need the calendar and stream
// functions of <chrono>, which take longer to compile than the rest of <chrono>.
#pragma once

#include <version>

#if defined(__GLIBCXX__) && __has_include(<bits/chrono.h>)
#include <bits/chrono.h>  // IWYU pragma: export
#else
#include <chrono>  // IWYU pragma: export
#endif

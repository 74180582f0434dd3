// Durations, time points and clocks, without the calendars and streams of <chrono>. They would add
// a quarter of the compile time of <thread>, and no limit of a wait needs them.
#pragma once

#include <version>

#if defined(__GLIBCXX__) && __has_include(<bits/chrono.h>)
#include <bits/chrono.h>  // IWYU pragma: export
#else
#include <chrono>  // IWYU pragma: export
#endif

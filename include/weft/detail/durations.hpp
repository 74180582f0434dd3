// Includes durations, time points and clocks, but not the calendars and streams of <chrono>. These
// would add a quarter of <thread>'s compile time, and deadlines need neither.
#pragma once

#include <version>

#if defined(__GLIBCXX__) && __has_include(<bits/chrono.h>)
#include <bits/chrono.h>  // IWYU pragma: export
#else
#include <chrono>  // IWYU pragma: export
#endif

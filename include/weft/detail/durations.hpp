// Includes durations, time points and clocks, but not the calendar and stream functions of
// <chrono>. These take a quarter as long to compile as <thread>, and deadlines do not need them.
#pragma once

#include <version>

#if defined(__GLIBCXX__) && __has_include(<bits/chrono.h>)
#include <bits/chrono.h>  // IWYU pragma: export
#else
#include <chrono>  // IWYU pragma: export
#endif

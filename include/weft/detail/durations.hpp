// Durations, moments and clocks of <chrono>. Its calendars and streams, which no limit of a wait
// needs, would take a quarter of the time that <thread> takes to compile.
#pragma once

#include <version>

#if defined(__GLIBCXX__) && __has_include(<bits/chrono.h>)
#include <bits/chrono.h>  // IWYU pragma: export
#else
#include <chrono>  // IWYU pragma: export
#endif

// Every C++ program of the comparison includes this file, weft's and the rivals'.
#pragma once

#include <sys/resource.h>

namespace weft::bench {

// Returns the user and system time that the whole process has used until now.
[[nodiscard]] inline double cpu_milliseconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto in_milliseconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
  };
  return in_milliseconds(usage.ru_utime) + in_milliseconds(usage.ru_stime);
}

// Returns how often threads of the process have waited in the kernel until now.
[[nodiscard]] inline double kernel_switches() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_nvcsw);
}

}  // namespace weft::bench

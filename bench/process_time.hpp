// In every C++ program of the comparison, weft's and the rivals'.
#pragma once

#include <sys/resource.h>

namespace weft::bench {

// User and system time of the whole process until now.
[[nodiscard]] inline double cpu_milliseconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto in_milliseconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
  };
  return in_milliseconds(usage.ru_utime) + in_milliseconds(usage.ru_stime);
}

// How often a thread of the process has waited in the kernel until now.
[[nodiscard]] inline double kernel_switches() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_nvcsw);
}

}  // namespace weft::bench

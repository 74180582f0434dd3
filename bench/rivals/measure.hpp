// Contains what a measured program needs besides fibers: request, clocks, kernel figures, checks.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/process_time.hpp"

namespace rivals {

using Clock = std::chrono::steady_clock;
using Metrics = std::vector<std::pair<std::string, double>>;  // The primary metric comes first.

struct Request {
  int workers = 1;
  double scale = 1.0;

  // Returns the scaled count, which is at least 1 even in a smoke run.
  std::int64_t count(std::int64_t full) const {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(full) * scale));
  }
};

// Gives the reason why this subject does not run a workload; it ends the process with kExitRefused.
struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline double nanoseconds_between(Clock::time_point start, Clock::time_point end = Clock::now()) {
  return std::chrono::duration<double, std::nano>(end - start).count();
}

template <typename Work>
double nanoseconds(Work work) {
  const auto start = Clock::now();
  work();
  return nanoseconds_between(start);
}

template <typename Work>
double milliseconds(Work work) {
  return nanoseconds(work) / 1e6;
}

// Warms up with a twentieth of `units`, then times `units` units of work. Returns nanoseconds per
// unit.
template <typename Work>
double per_unit(std::int64_t units, Work work) {
  work(std::max<std::int64_t>(1, units / 20));
  return nanoseconds([&] { work(units); }) / static_cast<double>(units);
}

// Returns in bytes what the kernel states in KiB, such as VmRSS; 0 if the field is absent.
inline double kernel_bytes(const char* path, std::string_view field) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.size() > field.size() && line.starts_with(field) && line[field.size()] == ':') {
      return std::strtod(line.c_str() + field.size() + 1, nullptr) * 1024;
    }
  }
  return 0;
}

using weft::bench::cpu_milliseconds;

// Guards against a workload that is fast because it does not do its work.
inline void expect(const char* what, std::int64_t got, std::int64_t wanted) {
  if (got == wanted) return;
  throw std::runtime_error("The " + std::string(what) + " is " + std::to_string(got) +
                           ", but must be " + std::to_string(wanted) + ".");
}

// Every started fiber touches two or three pages of its stack. The workload is refused if the
// machine would have to swap, which would falsify the results and disturb other users.
inline void refuse_if_short_of_memory(std::int64_t alive) {
  const double needed = static_cast<double>(alive) * 12 * 1024;
  const double available = kernel_bytes("/proc/meminfo", "MemAvailable");
  if (needed < available * 0.8) return;
  throw Refusal("Boost.Fiber needs about " + std::to_string(static_cast<int>(needed / 1e9)) +
                " GB for this many live fibers, more than is free; try a smaller --scale.");
}

}  // namespace rivals

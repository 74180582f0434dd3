// W14: what waiting costs where there is next to nothing to do, and how late it ends.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "bench/latency.hpp"
#include "bench/workload.hpp"

namespace weft::bench {

namespace {

constexpr double kFullSeconds = 2;

struct Usage {
  double processor_ms = 0;
  double switches = 0;  // By the kernel, since a thread waits.

  static Usage now() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto in_milliseconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
    };
    return {in_milliseconds(usage.ru_utime) + in_milliseconds(usage.ru_stime),
            static_cast<double>(usage.ru_nvcsw)};
  }
};

// Sleeps until each moment of a grid; returns by how much each sleep ended late, in nanoseconds.
std::vector<double> sleep_by_a_grid(std::chrono::nanoseconds pause, std::size_t count) {
  std::vector<double> late;
  late.reserve(count);
  auto due = Clock::now();
  for (std::size_t i = 0; i < count; ++i) {
    due = std::max(due + pause, Clock::now());
    this_fiber::sleep_until(due);
    late.push_back(nanoseconds_since(due));
  }
  return late;
}

}  // namespace

Metrics light_sleeps(const Request& request, std::size_t fibers, std::chrono::nanoseconds pause) {
  const double seconds = std::max(0.1, kFullSeconds * request.scale);
  const auto count = static_cast<std::size_t>(seconds * 1e9 / static_cast<double>(pause.count()));
  std::vector<std::vector<double>> late(fibers);
  const Usage before = Usage::now();
  const auto start = Clock::now();
  WaitGroup all;
  for (std::vector<double>& mine : late) {
    all.go([&mine, pause, count] { mine = sleep_by_a_grid(pause, count); });
  }
  all.wait();
  const double milliseconds = milliseconds_since(start);
  const Usage after = Usage::now();
  std::vector<double> nanoseconds;
  for (const std::vector<double>& each : late) {
    nanoseconds.insert(nanoseconds.end(), each.begin(), each.end());
  }
  Metrics metrics;
  metrics["cpu_percent"] = 100 * (after.processor_ms - before.processor_ms) / milliseconds;
  metrics["switches_per_second"] = 1e3 * (after.switches - before.switches) / milliseconds;
  add_quantiles(metrics, "late_", std::move(nanoseconds));
  return metrics;
}

}  // namespace weft::bench

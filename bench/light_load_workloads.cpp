// W14: measures what sleeps cost when there is little other work, and how late they end.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "bench/latency.hpp"
#include "bench/process_time.hpp"
#include "bench/workload.hpp"

namespace weft::bench {

namespace {

constexpr double kFullSeconds = 2;

// Sleeps until each moment of a grid; returns the lateness of each sleep's end in nanoseconds.
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
  const double processor = cpu_milliseconds();
  const double switches = kernel_switches();
  const auto start = Clock::now();
  WaitGroup all;
  for (std::vector<double>& mine : late) {
    all.go([&mine, pause, count] { mine = sleep_by_a_grid(pause, count); });
  }
  all.wait();
  const double milliseconds = milliseconds_since(start);
  Metrics metrics;
  metrics["cpu_percent"] = 100 * (cpu_milliseconds() - processor) / milliseconds;
  metrics["switches_per_second"] = 1e3 * (kernel_switches() - switches) / milliseconds;
  std::vector<double> nanoseconds;
  for (const std::vector<double>& each : late) {
    nanoseconds.insert(nanoseconds.end(), each.begin(), each.end());
  }
  add_quantiles(metrics, "late_", std::move(nanoseconds));
  return metrics;
}

}  // namespace weft::bench

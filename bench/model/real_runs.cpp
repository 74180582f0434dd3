// Runs real workloads of the comparison, and prints with each the counters that the model has too:
// to see how far the model is off where it can be seen.
//
//   real_runs W10 --workers 2 --scale 0.2
#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <weft/runtime.hpp>

#include "bench/workload.hpp"

int main(int argc, char** argv) {
  using weft::bench::Metrics;
  const std::map<std::string, Metrics (*)(const weft::bench::Request&)> workloads = {
      {"W1", &weft::bench::spawn_batches},
      {"W1b_empty", &weft::bench::flood_empty},
      {"W5", &weft::bench::skynet},
      {"W10", &weft::bench::fork_join_fib},
  };
  CLI::App app("Runs a workload, and prints its time and the runtime's counters.");
  weft::bench::Request request;
  std::string name;
  app.add_option("workload", name)->required()->check(CLI::IsMember(workloads));
  app.add_option("--workers", request.workers);
  app.add_option("--scale", request.scale);
  CLI11_PARSE(app, argc, argv);
  weft::RuntimeOptions options;
  options.workers = request.workers;
  weft::Runtime runtime(options);
  Metrics metrics = runtime.run([&] { return workloads.at(name)(request); });
  const weft::RuntimeStats stats = runtime.stats();
  metrics["spawned"] = static_cast<double>(stats.spawned);
  metrics["runs"] = static_cast<double>(stats.switches);
  metrics["steals"] = static_cast<double>(stats.steals);
  metrics["wakes"] = static_cast<double>(stats.worker_wakeups);
  metrics["sleeps"] = static_cast<double>(stats.worker_sleeps);
  std::cout << nlohmann::json(metrics) << '\n';
}

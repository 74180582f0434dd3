// Measures several programs fairly: each measurement is a new process, and the programs alternate,
// so that a noisy minute of the machine affects all of them.
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace examples {

// One implementation of a workload.
struct Contender {
  std::string name;
  // Prints a line of JSON: {"metrics": {"peak_rss_bytes": ..., <metric>: ...}}.
  std::vector<std::string> command;
  std::string metric;                // The metric to compare.
  double factor = 1;                 // The metric times this is the time of a task in ns.
  std::vector<nlohmann::json> runs;  // The metrics of each measurement.
  std::string failure;               // The first failure, which ends the runs.
};

struct Workload {
  std::string name;
  std::string title;
  std::vector<Contender> contenders;
};

struct Spread {
  double median = 0;
  double least = 0;
  double most = 0;
};

// Returns the spread of a metric that all runs have, or zeros if there were no runs.
[[nodiscard]] Spread spread_of(const Contender& contender, const std::string& metric,
                               double factor = 1);

struct ContestRules {
  unsigned repetitions = 3;                    // Measurements of each contender.
  std::chrono::seconds limit{120};             // The time limit of one measurement.
  std::chrono::seconds budget{1'000'000'000};  // After this time, no workload begins a round.
};

// Measures all contenders. `progress` is called before each measurement. If a contender fails or
// exceeds the limit, its `failure` gets the reason.
void run_contest(std::vector<Workload>& workloads, const ContestRules& rules,
                 const std::function<void(const std::string& what)>& progress);

}  // namespace examples

// Measures several programs fairly: each measurement is a fresh process, and they take turns, so
// that a noisy minute of the machine hits all of them.
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace examples {

// One way of doing a workload.
struct Contender {
  std::string name;
  // Prints a line of JSON: {"metrics": {"peak_rss_bytes": ..., <metric>: ...}}.
  std::vector<std::string> command;
  std::string metric;                // The metric compared,
  double factor = 1;                 // times this: nanoseconds for one task.
  std::vector<nlohmann::json> runs;  // The metrics of each measurement.
  std::string failure;               // The first one; the contender is out then.
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

// Of a metric that all runs have. Zeros if there were none.
[[nodiscard]] Spread spread_of(const Contender& contender, const std::string& metric,
                               double factor = 1);

struct ContestRules {
  unsigned repetitions = 3;                    // Measurements of each contender.
  std::chrono::seconds limit{120};             // That one measurement may take.
  std::chrono::seconds budget{1'000'000'000};  // After it a workload begins no more rounds.
};

// Measures all contenders. `progress` is called before each measurement. A contender that fails, or
// takes longer than the limit, leaves its reason behind.
void run_contest(std::vector<Workload>& workloads, const ContestRules& rules,
                 const std::function<void(const std::string& what)>& progress);

}  // namespace examples

#include "contest_report.hpp"

#include <fmt/core.h>

#include <ostream>
#include <string_view>

namespace examples {

namespace {

using nlohmann::json;

constexpr double kMebibyte = 1024.0 * 1024.0;

struct Figures {
  Spread nanoseconds;
  Spread mebibytes;
};

Figures figures_of(const Contender& contender) {
  return {.nanoseconds = spread_of(contender, contender.metric, contender.factor),
          .mebibytes = spread_of(contender, "peak_rss_bytes", 1 / kMebibyte)};
}

// Returns a number with three significant digits and no exponent.
std::string number(double value) {
  if (value >= 100) return fmt::format("{:.0f}", value);
  if (value >= 10) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

std::string range(const Spread& spread) {
  return fmt::format("{} .. {}", number(spread.least), number(spread.most));
}

std::string ratio(double value, double base) {
  return value > 0 && base > 0 ? fmt::format("{:.2f}", value / base) : "-";
}

// Returns zeros if the workload has no contender of this name.
Figures figures_of(const Workload& workload, std::string_view name) {
  for (const Contender& contender : workload.contenders) {
    if (contender.name == name) return figures_of(contender);
  }
  return {};
}

std::string title_of(const Workload& workload) {
  const std::size_t rounds = workload.contenders.front().runs.size();
  return fmt::format("{} (rounds: {})\n", workload.title, rounds);
}

json json_of_spread(const Spread& spread) {
  return {{"median", spread.median}, {"least", spread.least}, {"most", spread.most}};
}

}  // namespace

std::string table_of(const Workload& workload) {
  const Figures bare = figures_of(workload, kBareFibers);
  const Figures go = figures_of(workload, kGoroutines);
  std::string text = title_of(workload);
  text += fmt::format("  {:<26} {:>9} {:>17} {:>9}  {:>14} {:>14}\n", "", "ns a task", "",
                      "peak MiB", "of bare fibers", "of goroutines");
  text += fmt::format("  {:<26} {:>9} {:>17} {:>9}  {:>6} {:>7} {:>6} {:>7}\n", "", "median",
                      "least .. most", "median", "time", "memory", "time", "memory");
  for (const Contender& contender : workload.contenders) {
    if (contender.runs.empty()) {
      text += fmt::format("  {:<26} failed: {}\n", contender.name, contender.failure);
      continue;
    }
    const Figures own = figures_of(contender);
    text += fmt::format("  {:<26} {:>9} {:>17} {:>9}  {:>6} {:>7} {:>6} {:>7}\n", contender.name,
                        number(own.nanoseconds.median), range(own.nanoseconds),
                        number(own.mebibytes.median),
                        ratio(own.nanoseconds.median, bare.nanoseconds.median),
                        ratio(own.mebibytes.median, bare.mebibytes.median),
                        ratio(own.nanoseconds.median, go.nanoseconds.median),
                        ratio(own.mebibytes.median, go.mebibytes.median));
  }
  return text;
}

std::string table_of_jobs(const Workload& workload) {
  std::string text = title_of(workload);
  text +=
      fmt::format("  {:<26} {:>13} {:>14} {:>10} {:>19} {:>12}\n", "medians, ms from the start",
                  "first is done", "average is done", "all are", "least .. most", "most at once");
  for (const Contender& contender : workload.contenders) {
    if (contender.runs.empty()) {
      text += fmt::format("  {:<26} failed: {}\n", contender.name, contender.failure);
      continue;
    }
    const Spread total = spread_of(contender, "total_ms");
    text += fmt::format("  {:<26} {:>13.1f} {:>14.1f} {:>10.1f} {:>19} {:>12.0f}\n", contender.name,
                        spread_of(contender, "first_ms").median,
                        spread_of(contender, "average_ms").median, total.median,
                        fmt::format("{:.1f} .. {:.1f}", total.least, total.most),
                        spread_of(contender, "most_at_once").most);
  }
  return text;
}

json json_of(const std::vector<Workload>& workloads) {
  json all = json::array();
  for (const Workload& workload : workloads) {
    json contenders = json::array();
    for (const Contender& contender : workload.contenders) {
      const Figures own = figures_of(contender);
      contenders.push_back({{"name", contender.name},
                            {"failure", contender.failure},
                            {"ns_per_task", json_of_spread(own.nanoseconds)},
                            {"peak_mib", json_of_spread(own.mebibytes)},
                            {"runs", contender.runs}});
    }
    all.push_back({{"name", workload.name},
                   {"title", workload.title},
                   {"contenders", std::move(contenders)}});
  }
  return all;
}

void write_chart_data(std::ostream& out, const std::vector<Workload>& workloads) {
  for (const Workload& workload : workloads) {
    out << fmt::format("\"{}\"\n", workload.title);
    for (const Contender& contender : workload.contenders) {
      if (contender.runs.empty()) continue;
      const auto [nanoseconds, mebibytes] = figures_of(contender);
      out << fmt::format("\"{}\" {} {} {} {}\n", contender.name, nanoseconds.median,
                         nanoseconds.least, nanoseconds.most, mebibytes.median);
    }
    out << "\n\n";  // gnuplot's mark between blocks.
  }
}

}  // namespace examples

// Adds the report to the metrics.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>
#include <weft/detail/first_use.hpp>
#include <weft/detail/metrics_source.hpp>
#include <weft/posix.hpp>

#include "libs/posix/blocked_calls.hpp"

namespace weft::posix {

namespace {

using metrics::Reading;

// Merges the rows of different addresses in one function into one sample.
std::vector<BlockedCalls> merged_report() {
  std::vector<BlockedCalls> merged;
  for (const BlockedCalls& row : report()) {
    const auto same = std::ranges::find_if(merged, [&](const BlockedCalls& other) {
      return other.call == row.call && other.reason == row.reason && other.from == row.from;
    });
    if (same == merged.end()) {
      merged.push_back(row);
      continue;
    }
    same->count += row.count;
    same->total += row.total;
  }
  return merged;
}

void add_report(const detail::MetricsSource& /*source*/, Reading& reading) {
  metrics::Family& calls = detail::family_of(reading, "weft_posix_blocked_calls_total", "counter",
                                             "Calls in a posix::Scope that blocked their worker.");
  std::vector<metrics::Sample> times;
  for (const BlockedCalls& row : merged_report()) {
    const metrics::Labels labels{{"call", row.call}, {"reason", row.reason}, {"from", row.from}};
    calls.samples.push_back({.labels = labels, .value = row.count});
    times.push_back({.labels = labels, .value = static_cast<std::uint64_t>(row.total.count())});
  }
  detail::family_of(reading, "weft_posix_blocked_seconds_total", "counter",
                    "Time in calls that blocked their worker in a posix::Scope.")
      .samples = std::move(times);
}

// Never destroyed, because metrics may be read while the process ends.
constinit detail::FirstUse<detail::MetricsSource> source;

}  // namespace

void add_metrics() {
  (void)source.get(
      [] { return std::make_unique<detail::MetricsSource>("library", "posix", &add_report); });
}

}  // namespace weft::posix

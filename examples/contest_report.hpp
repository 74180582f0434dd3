// Makes the reports of pool_versus_bare: tables, JSON, and the data of the chart.
#pragma once

#include <iosfwd>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "contest.hpp"

namespace examples {

// The names of the reference contenders, which some workloads have.
inline constexpr const char* kBareFibers = "weft: a fiber per task";
inline constexpr const char* kPool = "weft: FiberPool";
inline constexpr const char* kGoroutines = "Go: a goroutine per task";

// Returns the time per task, the peak memory, and both figures relative to bare fibers and
// goroutines.
[[nodiscard]] std::string table_of(const Workload& workload);
// Returns the first, average and total times of the workload with sleeping jobs.
[[nodiscard]] std::string table_of_jobs(const Workload& workload);

// Returns medians, spreads and all raw values.
[[nodiscard]] nlohmann::json json_of(const std::vector<Workload>& workloads);

// Writes data for gnuplot. Each workload has a block, which begins with its title and has a line
// for each contender: name, ns per task (median, least, most), peak MiB.
void write_chart_data(std::ostream& out, const std::vector<Workload>& workloads);

}  // namespace examples

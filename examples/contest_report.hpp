// The reports of pool_versus_bare on its measurements: tables, JSON, and the data of the chart.
#pragma once

#include <iosfwd>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "contest.hpp"

namespace examples {

// The contenders that the others are compared to, where a workload has them.
inline constexpr const char* kBareFibers = "weft: a fiber per task";
inline constexpr const char* kPool = "weft: FiberPool";
inline constexpr const char* kGoroutines = "Go: a goroutine per task";

// Time for one task, peak memory, and both relative to bare fibers and goroutines.
[[nodiscard]] std::string table_of(const Workload& workload);
// First, average, total: for the workload of sleeping jobs.
[[nodiscard]] std::string table_of_jobs(const Workload& workload);

// Medians, spreads and all raw values.
[[nodiscard]] nlohmann::json json_of(const std::vector<Workload>& workloads);

// For gnuplot: a block for each workload, which begins with its title, and a line for each
// contender: name, ns per task (median, least, most), peak MiB.
void write_chart_data(std::ostream& out, const std::vector<Workload>& workloads);

}  // namespace examples

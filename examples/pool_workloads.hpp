// Runs the work of pool_versus_bare in two equivalent forms: with a fiber for each task, and with a
// FiberPool.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace examples {

struct Sizes {
  unsigned workers = 0;                  // Worker threads of the runtime; 0: one per processor.
  std::uint64_t tasks = 1'000'000;       // Mortar's workload.
  std::uint64_t batches = 20'000;        // The article's batches.
  std::uint64_t jobs = 100;              // The article's jobs,
  std::uint64_t job_milliseconds = 100;  // each of which sleeps this long.
};

// Runs a case in this process and returns its figures:
//   mortar:alone mortar:bare mortar:pool    ns_per_task
//   article:bare article:pool               ns_per_task
//   jobs:bare jobs:pool                     first_ms average_ms total_ms most_at_once
// Each case also has peak_rss_bytes, the peak memory of the process until then.
// Throws std::invalid_argument for other names, std::logic_error if the work was not done.
[[nodiscard]] nlohmann::json run_case(std::string_view name, const Sizes& sizes);

}  // namespace examples

// Translates the user's options into the scheduler's.
#pragma once

#include <weft/runtime.hpp>

#include "scheduler/scheduler.hpp"

namespace weft::runtime {

inline constexpr unsigned kMaxWorkers = 1024;

// Checks every option, and fills in missing ones from the environment and the machine. `helpers`
// make the blocking calls. Throws std::invalid_argument that names the option, the value and the
// limit.
[[nodiscard]] scheduler::SchedulerOptions resolve(const RuntimeOptions& options,
                                                  scheduler::Helpers* helpers = nullptr);

// Parses `text`, the value of WEFT_WORKERS, to a number of workers. Throws what resolve() throws.
[[nodiscard]] unsigned parse_workers(const char* text);

}  // namespace weft::runtime

// Collects the counts of one runtime.
#pragma once

#include <weft/runtime.hpp>

#include "scheduler/scheduler.hpp"

namespace weft::runtime {

[[nodiscard]] RuntimeStats stats_of(scheduler::Scheduler& scheduler) noexcept;

}  // namespace weft::runtime

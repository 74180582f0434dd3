// What all fibers are doing, in words.
#pragma once

#include <iosfwd>

#include "scheduler/scheduler.hpp"

namespace weft::runtime {

// A heading and one line per living fiber. What runs meanwhile may be shown stale.
void dump(scheduler::Scheduler& scheduler, std::ostream& out);
void dump_to_stderr(scheduler::Scheduler& scheduler);

}  // namespace weft::runtime

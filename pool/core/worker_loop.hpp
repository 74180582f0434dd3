// Runs a worker from its start to its end.
#pragma once

#include "pool/core/pool_core.hpp"

namespace weft::pool {

// Runs tasks of the pool, each in `item`, until the calling worker fiber has been retired and must
// leave the pool. `objects` are the values that tasks leave on the fiber. The worker still counts
// as live while it destroys the values.
void run_tasks(PoolCore& core, detail::PoolItem& item, WorkerObjects& objects) noexcept;

}  // namespace weft::pool

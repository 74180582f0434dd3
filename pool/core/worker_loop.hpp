// Runs a worker from its start to its end.
#pragma once

#include "pool/core/pool_core.hpp"

namespace weft::pool {

// Runs tasks of the pool until the calling worker must leave the pool. `item` holds the task that
// is running. `objects` are the FiberLocal values that the tasks create on the worker's fiber. The
// worker still counts as live while it destroys these values.
void run_tasks(PoolCore& core, detail::PoolItem& item, WorkerObjects& objects) noexcept;

}  // namespace weft::pool

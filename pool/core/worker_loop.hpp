// The life of a worker.
#pragma once

#include "pool/core/pool_core.hpp"

namespace weft::pool {

// Runs tasks of the pool, each in `item`, until the calling worker fiber has been retired and must
// leave the pool. `objects` are the values that tasks leave on the fiber; the worker destroys them
// while it counts as living.
void run_tasks(PoolCore& core, detail::PoolItem& item, WorkerObjects& objects) noexcept;

}  // namespace weft::pool

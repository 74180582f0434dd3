// The life of a worker.
#pragma once

#include "pool/core/pool_core.hpp"

namespace weft::pool {

// Runs tasks of the pool, each kept in `item`, until the calling fiber, a worker that was started
// for it, has been retired: it is to leave the pool. What the tasks leave are `objects`: they are
// destroyed while the worker counts as living.
void run_tasks(PoolCore& core, detail::PoolItem& item, WorkerObjects& objects) noexcept;

}  // namespace weft::pool

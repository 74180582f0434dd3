// An awaited task runs in the slot of the task that waits for it.
#pragma once

#include <weft/detail/pool_job.hpp>

namespace weft::pool {

class PoolCore;
class Registration;

// Runs the item, a job of run(), to its end in the slot of the caller's task, if that is `caller`
// and a task of the pool. False, and nothing has happened, if the pool has to be asked: because
// another task is first, a worker is there for it, or the caller has no slot to lend. Parks.
[[nodiscard]] bool run_in_slot_of(Registration* caller, PoolCore& core,
                                  detail::PoolItem& item) noexcept;

}  // namespace weft::pool

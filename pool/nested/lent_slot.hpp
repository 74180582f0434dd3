// Runs an awaited task in the slot of the task that waits for it.
#pragma once

#include <weft/detail/pool_job.hpp>

namespace weft::pool {

class PoolCore;
class Registration;

// Runs `item`, the job of a run() call, to its end in the slot of `caller`, if the caller is a task
// of the pool. Returns false if another task is next, a worker is available, the pool is paused,
// the caller has no slot to lend or is in a Submitting scope. The pool must then run it. Parks.
[[nodiscard]] bool run_in_slot_of(Registration* caller, PoolCore& core,
                                  detail::PoolItem& item) noexcept;

}  // namespace weft::pool

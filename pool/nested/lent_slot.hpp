// Runs an awaited task in the slot of the task that waits for it.
#pragma once

#include <weft/detail/pool_job.hpp>

namespace weft::pool {

class PoolCore;
class Registration;

// Runs the item, a job of run(), to its end in the slot of `caller`, if the caller is a task of the
// pool. Returns false, and changes nothing, if the pool must run the item: if another task is
// first, a worker is available, or the caller has no slot to lend. Parks.
[[nodiscard]] bool run_in_slot_of(Registration* caller, PoolCore& core,
                                  detail::PoolItem& item) noexcept;

}  // namespace weft::pool

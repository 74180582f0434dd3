// Runs an awaited task in the slot of the task that waits for it.
#pragma once

#include <weft/detail/pool_job.hpp>

namespace weft::pool {

class PoolCore;
class Registration;

// If `caller` is a task of the pool, runs `item`, the job of its run() call, to its end in the
// caller's slot. Returns false without running `item` if the caller may not lend its slot, for
// example because a worker is available or another task is next. Parks.
[[nodiscard]] bool run_in_slot_of(Registration* caller, PoolCore& core,
                                  detail::PoolItem& item) noexcept;

}  // namespace weft::pool

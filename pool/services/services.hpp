// The bodies of a pool's background fibers.
#pragma once

namespace weft::pool {

class PoolCore;

// Retires long-idle workers; returns when the pool is closed or no more workers can be retired.
void run_idle_reaper(PoolCore& core);
// Adapts workers.limit() to the load; returns when the pool is closed, or when it is idle and the
// limit cannot become lower.
void run_autoscaler(PoolCore& core);
// Calls on_tick; returns when the pool is closed and has no other user.
void run_ticker(PoolCore& core);

}  // namespace weft::pool

// The bodies of a pool's background fibers.
#pragma once

namespace weft::pool {

class PoolCore;

// Retires long-idle workers; returns when none is left to retire, or the pool is closed.
void run_idle_reaper(PoolCore& core);
// Adapts workers.limit() to the load; returns if the pool is closed, or idle at the least limit.
void run_autoscaler(PoolCore& core);
// Calls on_tick; returns when the pool is closed and has no other user.
void run_ticker(PoolCore& core);

}  // namespace weft::pool

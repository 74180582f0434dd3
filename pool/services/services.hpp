// The bodies of a pool's background fibers.
#pragma once

namespace weft::pool {

class PoolCore;

// Retires workers that have been idle for a long time; returns when no idle worker is left.
void run_idle_reaper(PoolCore& core);
// Makes the limit of workers follow the load; returns when there is no limit.
void run_autoscaler(PoolCore& core);
// Calls on_tick; returns when the pool is closed and has no other user.
void run_ticker(PoolCore& core);

}  // namespace weft::pool

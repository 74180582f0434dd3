// The bodies of a pool's background fibers.
#pragma once

namespace weft::pool {

class PoolCore;

// Retires workers that have been idle for long; returns when none are left to watch.
void run_idle_reaper(PoolCore& core);
// Moves the limit of workers with the load; returns when there is no limit.
void run_autoscaler(PoolCore& core);
// Calls on_tick; returns when nothing else of the pool is left.
void run_ticker(PoolCore& core);

}  // namespace weft::pool

// The bodies of a pool's background fibers.
#pragma once

namespace weft::pool {

class PoolCore;

// Retires workers that have been idle for long; while there are any to watch.
void run_idle_reaper(PoolCore& core);
// Moves the limit of workers with the load; while there is any.
void run_autoscaler(PoolCore& core);
// Calls on_tick; until nothing else of the pool is left.
void run_ticker(PoolCore& core);

}  // namespace weft::pool

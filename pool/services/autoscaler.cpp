// Controls how many workers a pool may have.
//
// Under GrowPolicy::load_factor, the number of workers has a limit, which follows the load. When
// the load becomes too high, the pool raises the limit at once. The autoscaler is a fiber that
// checks once in each interval whether to lower it. Up to the limit, the pool starts workers on
// demand. Workers beyond the limit are surplus. The pool retires them as it does after resize().
//
// If there are fewer workers than tasks, a running task may wait for a queued task. Therefore the
// autoscaler also raises the limit if a task is queued and no task has started since its last
// check. The autoscaler exists as long as the queue contains a task to which the limit applies.
// While it does not exist, PoolState::raise_at is 0, so the next submit() starts it.
#include "pool/core/pool_core.hpp"
#include "pool/services/services.hpp"

namespace weft::pool {

void run_autoscaler(PoolCore& core) {
  const GrowPolicy::LoadFactor& factor = core.options().grow.factor();
  core.lock();
  PoolState& state = core.state();
  std::uint64_t begun = state.left_queue();
  while (!state.closed) {
    core.sleep(state.autoscaler, Deadline::after(factor.interval));
    const bool is_stuck =
        state.queue.startable() > 0 && !state.paused && state.left_queue() == begun;
    begun = state.left_queue();
    const std::size_t load = state.slots.running() + state.queue.startable();
    if (is_stuck) {
      state.raise_limit();
    } else if (static_cast<double>(load) <
               factor.down * static_cast<double>(state.workers.limit())) {
      state.lower_limit();
    }
    core.match_up();
    core.lock();
    if (state.workers.limit() == state.least_limit() && state.is_idle()) break;
  }
  state.autoscaler.end();
  state.set_limit(state.workers.limit());
  core.match_up();  // The limit does not apply to the queued tasks of a closed pool.
  core.leave();
}

}  // namespace weft::pool

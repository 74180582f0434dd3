// Retires workers that have been idle for long.
//
// No worker reads the clock. The reaper, a fiber that exists while there are idle workers to watch,
// advances the pool's epoch every idle_timeout; a worker that goes idle notes the epoch. An epoch
// recorded two epochs ago is at least one and at most two timeouts old. A worker that was used
// meanwhile has recorded a newer epoch, so it is never retired by mistake.
//
// A runtime that ends waits for its last fibers. So a runtime that is ending uses a short
// idle_timeout, and keeps no worker.
#include <algorithm>
#include <chrono>
#include <weft/detail/own_runtime.hpp>
#include <weft/detail/waist.hpp>

#include "pool/core/pool_core.hpp"
#include "pool/services/services.hpp"

namespace weft::pool {
namespace {

// The number of workers retired under one hold of the lock.
constexpr int kBatch = 64;

constexpr std::chrono::nanoseconds kTimeoutAtEnd = std::chrono::milliseconds(10);

std::chrono::nanoseconds timeout_of(const PoolCore& core) noexcept {
  const std::chrono::nanoseconds timeout = core.options().idle_timeout;
  return detail::runtime_is_ending() ? std::min(timeout, kTimeoutAtEnd) : timeout;
}

// Requires the lock.
std::size_t kept_workers(PoolCore& core) noexcept WEFT_REQUIRES(core.spin_lock()) {
  return detail::runtime_is_ending() ? 0 : core.state().kept_workers();
}

// Requires the lock; releases it meanwhile. Ends an epoch.
void retire_stale(PoolCore& core) noexcept WEFT_REQUIRES(core.spin_lock()) {
  PoolState& state = core.state();
  state.workers.end_epoch();
  for (bool more = true; more;) {
    Effects stale;
    const std::size_t kept = kept_workers(core);
    for (int n = 0; n < kBatch && state.coldest_may_go(kept); ++n) {
      state.workers.retire_coldest(stale);
    }
    more = !stale.empty();
    core.unlock();
    stale.perform();
    core.lock();
  }
  TaskQueue::Memory unused = state.queue.trim();
  core.unlock();
  unused = {};
  core.lock();
}

}  // namespace

void run_idle_reaper(PoolCore& core) {
  core.lock();
  PoolState& state = core.state();
  while (!state.closed) {
    core.sleep(state.reaper, Deadline::after(timeout_of(core)));
    retire_stale(core);
    if (state.workers.idle() == 0 || state.workers.staying() <= kept_workers(core)) break;
  }
  // The lock is still the one under which the idle workers were checked.
  state.reaper.end();
  core.unlock_and_leave();
}

}  // namespace weft::pool

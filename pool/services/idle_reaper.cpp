// Retires workers that have been idle for a long time.
//
// No worker reads the clock. The reaper is a fiber that exists while the pool has idle workers to
// watch; it advances the pool's epoch every idle_timeout. A worker that goes idle stores the epoch.
// If the stored epoch is two epochs old, the worker has been idle for one to two timeouts. A worker
// that ran a task meanwhile has stored a newer epoch, so it is never retired by mistake.
//
// When a runtime ends, it waits for its last fibers. The reaper then uses a short timeout, and
// retires all idle workers.
#include <algorithm>
#include <chrono>
#include <weft/detail/own_runtime.hpp>
#include <weft/detail/waist.hpp>

#include "pool/core/pool_core.hpp"
#include "pool/services/services.hpp"

namespace weft::pool {
namespace {

// The number of workers that are retired before the lock is released and acquired again.
constexpr int kBatch = 64;

constexpr std::chrono::nanoseconds kTimeoutAtEnd = std::chrono::milliseconds(10);

std::chrono::nanoseconds timeout_of(const PoolCore& core) noexcept {
  const std::chrono::nanoseconds timeout = core.options().idle_timeout;
  return detail::runtime_is_ending() ? std::min(timeout, kTimeoutAtEnd) : timeout;
}

// The caller must hold the lock.
std::size_t kept_workers(PoolCore& core) noexcept WEFT_REQUIRES(core.spin_lock()) {
  return detail::runtime_is_ending() ? 0 : core.state().kept_workers();
}

// Ends an epoch, and retires the workers that have been idle for too long. The caller must hold the
// lock, which the function releases temporarily.
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
  // The lock has been held since the check, so no worker has gone idle meanwhile.
  state.reaper.end();
  core.unlock_and_leave();
}

}  // namespace weft::pool

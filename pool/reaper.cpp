// Retiring workers that have been idle for long.
//
// No worker reads the clock. The reaper, a fiber that exists while there are idle workers to
// watch, advances the pool's epoch every idle_timeout; a worker that goes idle notes the epoch.
// A note that is two epochs old was made at least one and at most two timeouts ago. A worker that
// was used meanwhile has a newer note, so it is never retired by mistake.
#include "pool/pool_core.hpp"
#include "pool/spawn_fiber.hpp"

namespace weft::pool {

using detail::Waiter;

namespace {

// Workers retired under one hold of the lock.
constexpr int kBatch = 64;

}  // namespace

// Requires lock_. Whether a worker that goes idle must start the reaper first.
bool PoolCore::reaper_is_due() const noexcept {
  return !reaper_alive_ && options_.idle_timeout != kNever && live_ > kept_workers();
}

// Requires lock_.
void PoolCore::announce_reaper() noexcept {
  reaper_alive_ = true;
  ++present_;
}

// After announce_reaper(), without lock_. False if there is no fiber to be had; then the next
// worker that goes idle tries again.
bool PoolCore::start_reaper() noexcept {
  if (!spawn_fiber(options_, [this] { reap(); })) return true;
  lock_.lock();
  reaper_alive_ = false;
  --present_;  // Not the last one: a worker is calling.
  lock_.unlock();
  return false;
}

void PoolCore::reap() noexcept {
  Deadline tick = Deadline::after(options_.idle_timeout);
  lock_.lock();
  while (!closed_) {
    Waiter self;
    // Woken by close(), or by the clock.
    (void)detail::wait_in_until(reaper_bed_, lock_, self, detail::WaitReason::sleep, tick);
    retire_stale();
    tick = Deadline::after(options_.idle_timeout);
    lock_.lock();
    if (idle_.empty() || live_ <= kept_workers()) break;
  }
  // Under the same hold of the lock as the look at idle_: who goes idle later starts another.
  reaper_alive_ = false;
  lock_.unlock();
  leave();
}

// Without lock_. Ends an epoch.
void PoolCore::retire_stale() noexcept {
  lock_.lock();
  ++epoch_;
  for (bool more = true; more;) {
    WakeChain stale;
    for (int n = 0; n < kBatch && coldest_is_stale(); ++n) retire_coldest(stale);
    more = !stale.empty();
    lock_.unlock();
    stale.wake_all();
    lock_.lock();
  }
  const Backlog::Memory unused = queue_.trim();
  lock_.unlock();
}

// Requires lock_. Idle workers that queued items count on stay.
bool PoolCore::coldest_is_stale() const noexcept {
  return !idle_.empty() && queue_.startable() == 0 && live_ > kept_workers() &&
         epoch_ - idle_.bottom().idle_since >= 2;
}

// Requires lock_ and an idle worker. Its slot is free from now on, though its fiber has yet to
// end: nobody is refused or blocked because a worker is being retired.
void PoolCore::retire_coldest(WakeChain& wakes) noexcept {
  Worker& worker = idle_.pop_bottom();
  worker.retired = true;
  --live_;
  ++retired_;
  wakes.add(worker);
}

// Requires lock_ and an awaited worker, which learns of it when it arrives.
void PoolCore::retire_awaited() noexcept {
  --waking_;
  --live_;
  ++doomed_;
  ++retired_;
}

// Requires lock_. Of a closed pool without tasks. Visits of a sub-pool are not waited for, as the
// host may take long to get to them; unless they are to serve a sub-pool of its own that stands in
// its line.
void PoolCore::retire_all_without_task(WakeChain& wakes) noexcept {
  while (!idle_.empty()) retire_coldest(wakes);
  if (host_ == nullptr || !blocked_.empty()) return;
  while (waking_ > 0) retire_awaited();
}

// Requires lock_. Makes I1 true again after the limit has shrunk or a lender has taken a slot:
// idle workers go first, then awaited ones.
void PoolCore::retire_surplus(WakeChain& wakes) noexcept {
  while (live_ > limit_ && !idle_.empty()) retire_coldest(wakes);
  while (live_ > limit_ && waking_ > 0) retire_awaited();
}

}  // namespace weft::pool

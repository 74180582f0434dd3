// Keeping the tasks of a pool from starting.
//
// While the pool is paused, workers that look for a task go idle though some are queued. They are
// not called, and the reaper leaves them alone as long as anything is queued: so there is somebody
// to run it afterwards. Parties that are blocked are let in by a worker that finds nothing to do,
// because no pop makes room for them.
#include <utility>

#include "pool/pool_core.hpp"

namespace weft::pool {

using detail::Waiter;

void PoolCore::pause() noexcept {
  lock_.lock();
  if (!closed_) paused_ = true;
  lock_.unlock();
}

void PoolCore::resume() noexcept {
  lock_.lock();
  end_pause_and_match_up();
}

void PoolCore::end_pause_and_match_up() noexcept {
  WakeChain wakes;
  if (!paused_) {
    lock_.unlock();
    return;
  }
  end_pause(wakes);
  lock_.unlock();
  wakes.wake_all();
  lock_.lock();
  match_up();
}

bool PoolCore::is_paused() noexcept {
  lock_.lock();
  const bool paused = paused_;
  lock_.unlock();
  return paused;
}

bool PoolCore::wait_paused_until(const Until& until) {
  refuse_own_tasks();
  lock_.lock();
  if (!paused_ || is_still()) {
    const bool paused = paused_;
    lock_.unlock();
    return paused;
  }
  Waiter self;
  const auto winner =
      detail::wait_in_until(still_waiters_, lock_, self, detail::WaitReason::pool_wait, until);
  return winner == detail::Claim::kNotifier && self.granted;
}

// Requires lock_. Those who wait for the tasks to end are told that it was in vain. The caller
// calls workers for what is queued.
void PoolCore::end_pause(WakeChain& wakes) noexcept {
  paused_ = false;
  wakes.add_all(still_waiters_.claim_all());
}

// Requires lock_. Whether a worker that starts no task may have left room for one that is blocked:
// in a pause none is started, and a task with terms leaves room, but no place in the queue of plain
// ones.
bool PoolCore::must_admit_without_start() const noexcept {
  return !blocked_.empty() && has_room() && (paused_ || !queue_.has_room_for_plain());
}

// Requires lock_.
void PoolCore::tell_if_still(WakeChain& wakes) noexcept {
  if (!paused_ || !is_still()) return;
  while (Waiter* waiter = still_waiters_.claim_front()) {
    waiter->granted = true;
    wakes.add(*waiter);
  }
}

}  // namespace weft::pool

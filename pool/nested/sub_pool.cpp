// Implements sub-pools: pools whose tasks run in the slots of another pool.
//
// A sub-pool has no worker fibers. Where another pool would start a worker, a sub-pool submits a
// drain task to its parent. The drain task runs the sub-pool's tasks one after another, in its own
// slot. Neither pool can therefore exceed its capacity. See "Pools inside pools" in pool/README.md.
#include "pool/nested/sub_pool.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <utility>

#include "pool/core/pool_core.hpp"

namespace weft::pool {

using detail::PoolItem;
using detail::Waiter;

namespace {

// The caller must hold the lock. Returns the first sub-pool, starting at `sub_pool`, that has not
// ended, and counts the caller as its user. Returns null if there is none.
SubPool* enter_first(SubPool* sub_pool) noexcept {
  while (sub_pool != nullptr && sub_pool->has_ended) sub_pool = sub_pool->next_sub_pool;
  if (sub_pool != nullptr) ++sub_pool->core.shared_state().users;
  return sub_pool;
}

}  // namespace

// ---- The relation of a sub-pool to its parent

PoolNesting::PoolNesting(PoolCore& core) : core_(core) {
  if (core.parent() != nullptr) self_ = new SubPool(core, *core.parent());
}

void PoolNesting::begin() noexcept {
  if (self_ == nullptr) return;
  PoolCore& parent = self_->parent;
  parent_ = &static_cast<PoolNesting&>(parent.nesting());
  const detail::SpinGuard guard(core_.spin_lock());
  self_->next_sub_pool = std::exchange(parent_->first_sub_pool_, self_);
  if (self_->next_sub_pool != nullptr) self_->next_sub_pool->previous_sub_pool = self_;
  core_.state().closed = core_.state().closing = parent.shared_state().closing;
}

void PoolNesting::end() noexcept {
  if (self_ != nullptr) move_out(self_->parent);
  if (first_sub_pool_ == nullptr) return;
  std::fprintf(stderr,
               "weft: pool '%s' ends before its sub-pools: they have to be destroyed first\n",
               core_.options().name.c_str());
  std::abort();
}

void PoolNesting::move_out(PoolCore& parent) noexcept {
  core_.lock();
  self_->has_ended = true;
  if (self_->linked) parent.shared_state().waiters.blocked.erase(*self_);
  const PoolItem unused = std::move(self_->drain);
  core_.unlock();
  // enter() now returns null. Waits until all callers that entered the pool earlier have left.
  (void)core_.wait(Condition::joined, 0, {});
  core_.lock();
  SubPool* const next = self_->next_sub_pool;
  SubPool* const previous = self_->previous_sub_pool;
  (previous == nullptr ? parent_->first_sub_pool_ : previous->next_sub_pool) = next;
  if (next != nullptr) next->previous_sub_pool = previous;
  core_.unlock();
  self_->release();
}

void PoolNesting::lock_with_sub_pools_closed(Close mode) noexcept {
  PoolState& state = core_.state();
  core_.lock();
  do {
    state.closing = true;
    // A sub-pool stays in the list until all callers that have entered it have left.
    for (SubPool* sub_pool = enter_first(first_sub_pool_); sub_pool != nullptr;) {
      PoolCore& core = sub_pool->core;
      core_.unlock();
      core.close(mode);
      core_.lock();
      sub_pool = enter_first(sub_pool->next_sub_pool);
      core_.unlock();
      core.leave();
      core_.lock();
    }
  } while (!state.closing);  // The loop repeats if reopen() was called meanwhile.
  if (mode != Close::drain) take_out_idle_sub_pools();
}

// Removes sub-pools without tasks from the wait queue.
void PoolNesting::take_out_idle_sub_pools() noexcept {
  BlockedSubmitters& blocked = core_.state().waiters.blocked;
  Waiter* next = nullptr;
  for (Waiter* waiter = blocked.first_for_room(); waiter != nullptr; waiter = next) {
    next = waiter->next;
    if (waiter->waker) continue;  // Skips submitters.
    auto& place = static_cast<SubPool&>(*waiter);
    PoolState& sub_pool = place.core.shared_state();
    if (sub_pool.has_accepted()) continue;  // The sub-pool has been opened.
    sub_pool.waits_at_parent = false;
    blocked.erase(place);
  }
}

// ---- Asking for workers

// A sub-pool calls this function instead of starting a worker. On success, the parent has accepted
// a drain task. If `when_full` is OnFull::block, the sub-pool may be waiting for room in the parent
// instead.
std::error_code PoolNesting::ask_for_worker(OnFull when_full, Effects& effects) noexcept {
  PoolItem item;
  core_.unlock();
  item.job = new (std::nothrow) DrainTask(*self_);
  core_.lock();
  std::error_code error = std::make_error_code(std::errc::not_enough_memory);
  if (item.job != nullptr) error = hand_in(item, when_full, effects);
  if (!item.empty()) {
    core_.unlock();
    std::exchange(item.job, nullptr)->abandon();
    core_.lock();
  }
  // No worker can be started, so this caller runs accepted tasks that would otherwise never run.
  if (error && error != Errc::full && error != Errc::closed) {
    core_.unlock(effects);
    core_.lock();
    core_.run_stranded_tasks();
  }
  return error;
}

// A parent that is being closed accepts a drain task only if the sub-pool has accepted tasks.
// Blocked submitters need no drain task: the parent's close() also closes the sub-pool, so their
// submissions fail.
std::error_code PoolNesting::hand_in(PoolItem& drain, OnFull when_full, Effects& effects) noexcept {
  PoolCore& parent = *core_.parent();
  std::error_code error = Errc::closed;
  if (!parent.shared_state().closing) {
    error = parent.accept_if_room(drain, effects).value_or(make_error_code(Errc::full));
  }
  if (error == Errc::closed && core_.state().has_accepted()) error = Errc::full;
  if (error != Errc::full || when_full != OnFull::block) return error;
  return wait_for_room(drain, effects) ? std::error_code()
                                       : std::make_error_code(std::errc::not_enough_memory);
}

// Adds the sub-pool to the end of the parent's wait queue, like a blocked submitter. Returns false
// if no memory is available.
bool PoolNesting::wait_for_room(PoolItem& drain, Effects& effects) noexcept {
  PoolCore& parent = *core_.parent();
  PoolState& state = parent.shared_state();
  SubPool& place = *self_;
  while (!place.linked && !state.queue.will_have_room_for(drain)) {
    if (!parent.grow_queue(drain)) return false;
  }
  if (place.linked) return true;
  if (place.drain.empty()) place.drain = std::move(drain);
  place.slot = &place.drain;
  state.waiters.blocked.push_back(place);
  core_.state().waits_at_parent = true;
  // The parent may now have room, or may have to request a worker from its own parent.
  parent.match_up(effects);
  core_.lock();
  return true;
}

}  // namespace weft::pool

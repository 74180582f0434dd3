// Sub-pools: pools whose tasks run in the slots of another.
//
// A sub-pool has no fibers. Where another pool would start a worker, it asks its parent to accept a
// drain task, which runs the sub-pool's tasks, one after the other, in the slot in which it runs
// itself. So neither capacity can be exceeded. README.md tells the rest.
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

// Enters the first of these sub-pools that has not ended. Null if there is none.
SubPool* enter_first(SubPool* sub_pool, PoolCore*& core) noexcept {
  while (sub_pool != nullptr && (core = sub_pool->enter()) == nullptr) {
    sub_pool = sub_pool->next_sub_pool;
  }
  return sub_pool;
}

}  // namespace

PoolCore* SubPool::enter() noexcept {
  const detail::SpinGuard guard(lock_);
  if (has_ended_) return nullptr;
  core_.locked([](PoolState& state) { ++state.users; });
  return &core_;
}

void SubPool::detach() noexcept {
  const detail::SpinGuard guard(lock_);
  has_ended_ = true;
}

// ---- The life of a sub-pool at its parent's

PoolNesting::PoolNesting(PoolCore& core) : core_(core) {
  if (core.parent() == nullptr) return;
  self_ = new SubPool(core);
  parent_ = &static_cast<PoolNesting&>(core.parent()->nesting());
  const detail::SpinGuard guard(core.parent()->spin_lock());
  self_->next_sub_pool = std::exchange(parent_->first_sub_pool_, self_);
  if (self_->next_sub_pool != nullptr) self_->next_sub_pool->previous_sub_pool = self_;
  core.state().closed = core.state().closing = core.parent()->state().closing;
}

PoolNesting::~PoolNesting() {
  if (self_ != nullptr) move_out(*core_.parent());
  if (first_sub_pool_ == nullptr) return;
  std::fprintf(stderr,
               "weft: pool '%s' ends before its sub-pools: they have to be destroyed first\n",
               core_.options().name.c_str());
  std::abort();
}

// After the sub-pool was closed and joined.
void PoolNesting::move_out(PoolCore& parent) noexcept {
  self_->detach();
  // Callers that have entered leave; later ones find nobody.
  (void)core_.wait(Condition::joined, 0, {});
  PoolItem unused;
  parent.lock();
  if (self_->linked) parent.state().waiters.blocked.erase(*self_);
  unused = std::move(self_->drain);
  SubPool* const next = self_->next_sub_pool;
  SubPool* const previous = self_->previous_sub_pool;
  (previous == nullptr ? parent_->first_sub_pool_ : previous->next_sub_pool) = next;
  if (next != nullptr) next->previous_sub_pool = previous;
  parent.unlock();
  self_->release();
}

void PoolNesting::lock_with_sub_pools_closed(Close mode) noexcept {
  PoolState& state = core_.state();
  core_.lock();
  do {
    state.closing = true;
    // A sub-pool that was entered keeps its place in the list until it is left.
    PoolCore* core = nullptr;
    SubPool* sub_pool = enter_first(first_sub_pool_, core);
    while (sub_pool != nullptr) {
      core_.unlock();
      core->close(mode);
      PoolCore* const told = core;
      core_.lock();
      sub_pool = enter_first(sub_pool->next_sub_pool, core);
      core_.unlock();
      told->leave();
      core_.lock();
    }
  } while (!state.closing);  // Opened again meanwhile, as sub-pools may have been since.
  if (mode != Close::drain) take_out_idle_sub_pools();
}

// Requires the lock. From the wait queue: those who have nothing left to run.
void PoolNesting::take_out_idle_sub_pools() noexcept {
  BlockedSubmitters& blocked = core_.state().waiters.blocked;
  Waiter* next = nullptr;
  for (Waiter* waiter = blocked.first_for_room(); waiter != nullptr; waiter = next) {
    next = waiter->next;
    if (waiter->waker) continue;  // A submitter.
    auto& place = static_cast<SubPool&>(*waiter);
    PoolCore& sub_pool = place.core();
    const detail::SpinGuard guard(sub_pool.spin_lock());
    if (sub_pool.state().has_accepted()) continue;  // It was opened meanwhile.
    --sub_pool.state().drains_blocked;
    blocked.erase(place);
    static_cast<DrainTask*>(place.drain.job)->call_off();
  }
}

// ---- Asking for workers

// In place of the start of a worker. Success: a drain task was accepted or, if `when_full` is to
// block, the sub-pool waits for room.
//
// If it was not accepted, others may have relied on it meanwhile; or one that waited for room has
// come in vain because this one was to start. For them the sub-pool waits for room, again. A parent
// that is being closed hears only of what has been accepted: callers that are blocked are told by
// its close.
std::error_code PoolNesting::ask_for_worker(OnFull when_full) noexcept {
  PoolState& state = core_.state();
  const std::error_code answer = ask_once(when_full);
  for (std::error_code last = answer; answer; last = ask_once(OnFull::block)) {
    if (last && last != Errc::full && last != Errc::closed) {
      core_.run_stranded_tasks();
      break;
    }
    if (!state.lacks_worker() || (last == Errc::closed && !state.has_accepted())) break;
  }
  return answer == Errc::full && when_full == OnFull::block ? std::error_code() : answer;
}

// Errc::full also if the sub-pool waits for room.
std::error_code PoolNesting::ask_once(OnFull when_full) noexcept {
  core_.state().workers.begin_start();
  core_.unlock();
  const std::error_code error = submit_drain(when_full);
  core_.lock();
  if (error) core_.state().workers.fail_start();
  return error;
}

// Without any lock. Errc::full: there is no room. Then the sub-pool waits for it, if it asked to
// block.
std::error_code PoolNesting::submit_drain(OnFull when_full) noexcept {
  PoolCore& parent = *core_.parent();
  auto* const drain = new (std::nothrow) DrainTask(parent.root(), *self_);
  if (drain == nullptr) return std::make_error_code(std::errc::not_enough_memory);
  PoolItem item(*drain);
  std::error_code error = Errc::closed;
  parent.lock();
  if (parent.state().closing) {
    parent.unlock();
  } else if (const auto accepted = parent.accept_if_room(item)) {
    error = *accepted;
  } else {
    parent.unlock();
    error = Errc::full;
  }
  if (!error) return {};
  // A sub-pool's accepted tasks are still run, also if it is the parent of one that is closed.
  if (error == Errc::closed && core_.locked(&PoolState::has_accepted)) error = Errc::full;
  if (error == Errc::full && when_full == OnFull::block) error = wait_for_room(item);
  if (item.job != nullptr) drain->call_off();
  return error;
}

// Without any lock. There the sub-pool gets what a blocked submitter gets: the next room, after
// those who came before. Errc::full, unless it could not be done; the item stays if it is not
// needed.
std::error_code PoolNesting::wait_for_room(PoolItem& item) noexcept {
  PoolCore& parent = *core_.parent();
  PoolItem unused;
  SubPool& place = *self_;
  parent.lock();
  while (!place.linked && !parent.state().queue.will_have_room_for(item)) {
    if (parent.grow_queue(item)) continue;
    parent.unlock();
    return std::make_error_code(std::errc::not_enough_memory);
  }
  if (place.linked) {
    parent.unlock();
    return Errc::full;
  }
  unused = std::move(place.drain);
  static_cast<DrainTask*>(item.job)->wait_in_queue();
  place.drain = std::move(item);
  place.slot = &place.drain;
  parent.state().waiters.blocked.push_back(place);
  core_.locked([](PoolState& state) { ++state.drains_blocked; });
  parent.match_up();  // There may be room by now.
  return Errc::full;
}

}  // namespace weft::pool

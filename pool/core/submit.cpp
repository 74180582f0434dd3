// Accepts tasks.
#include <algorithm>
#include <new>
#include <utility>
#include <vector>
#include <weft/detail/invariant.hpp>
#include <weft/detail/trace_event.hpp>

#include "pool/core/pool_core.hpp"

namespace weft::pool {

using detail::PoolItem;
using detail::WaitReason;

namespace {

// The caller must hold `lock`, which this function releases during the allocation. Returns false if
// no memory is available.
bool reserve_unlocked(std::vector<PoolItem>& items, std::size_t size, detail::SpinLock& lock)
    WEFT_REQUIRES(lock) {
  bool reserved = true;
  lock.unlock();
  try {
    items.reserve(size);
  } catch (const std::bad_alloc&) {
    reserved = false;
  }
  lock.lock();
  return reserved;
}

}  // namespace

std::error_code PoolCore::check(PoolItem& item) noexcept {
  std::error_code why;
  if (item.empty()) {
    why = Errc::empty_task;
  } else {
    runner_.stamp(item);
    if (TaskQueue::attributes_of(item) != nullptr) why = item.job->over_before_start();
  }
  if (!why) return {};
  Effects none;
  lock_.lock();
  return answered(why, none);
}

PoolCore::Answer PoolCore::submit(PoolItem& item, OnFull when_full) {
  Answer answer{.next = Next::block};
  Effects effects;
  lock_.lock();
  if (const auto accepted = accept_if_room(item, effects)) [[likely]]
    return {answered(*accepted, effects)};
  switch (when_full) {
    case OnFull::reject:
      return {answered(Errc::full, effects)};
    case OnFull::caller_runs:
      if (state_.paused || TaskQueue::has_key(item)) break;
      ++state_.counters.submitted;
      ++state_.in_callers;
      answer = {.next = Next::run_in_caller, .number = state_.left_queue()};
      break;
    case OnFull::drop_oldest:
      return {submit_dropping(item, effects)};
    case OnFull::block:
      break;
  }
  unlock(effects);
  return answer;
}

std::optional<std::error_code> PoolCore::accept_if_room(PoolItem& item, Effects& effects) noexcept {
  const std::size_t weight = TaskQueue::weight_of(item);
  for (;;) {
    if (state_.closed) [[unlikely]]
      return Errc::closed;
    if (weight > 1 && weight > state_.slots.capacity()) [[unlikely]]
      return Errc::too_heavy;
    if (state_.must_wait(item, weight)) return {};
    std::error_code error;
    if (state_.must_grow(state_.queue.startable_with(item)) && !state_.relies_on_drain_in_queue())
        [[unlikely]] {
      // The pool starts the worker first, so that it accepts no task without a worker to run it.
      error = start_worker_for(item, effects);
      // Another caller may have closed the pool, because starting the worker released the lock.
      if (state_.closed) continue;
      if (error == Errc::full) return {};
    } else if (!state_.queue.has_room_for(item)) [[unlikely]] {
      if (!grow_queue(item)) error = std::make_error_code(std::errc::not_enough_memory);
    } else {
      break;
    }
    if (error) return error;
  }
  state_.accept(item);
  if (state_.should_call_worker()) effects.wake(state_.workers.call());
  return std::error_code();
}

std::error_code PoolCore::submit_blocking(PoolItem& item, const Until& until) {
  Effects effects;
  for (;;) {
    lock_.lock();
    if (const auto accepted = accept_if_room(item, effects)) return answered(*accepted, effects);
    std::error_code error;
    if (state_.waiters.parked >= options_->max_blocked) {
      error = Errc::too_many_waiting;
    } else if (state_.must_wait_at_parent(TaskQueue::weight_of(item))) {
      error = nesting_->ask_for_worker(OnFull::block, effects);
    } else if (state_.queue.will_have_room_for(item)) {
      if (effects.empty()) break;
    } else if (!grow_queue(item)) {
      // When the pool later admits this submitter, it holds the lock, so it cannot allocate memory
      // then.
      error = std::make_error_code(std::errc::not_enough_memory);
    }
    if (error) return answered(error, effects);
    unlock(effects);
  }
  Submitter self;
  self.slot = &item;
  self.waits_behind_key = state_.queue.would_be_held_up(item);
  ++state_.waiters.parked;
  const auto* attributes = TaskQueue::attributes_of(item);
  const Until limit = attributes == nullptr ? until : until.but_before(attributes->deadline);
  WEFT_INVARIANT(!state_.closed, "PoolState I3: no submitter blocks once the pool is closed");
  const auto winner =
      detail::wait_in_until(state_.waiters.blocked, lock_, self, WaitReason::pool_submit, limit);
  if (winner == detail::Claim::kNotifier) {
    // If the task was not accepted, close() ended the wait, and the pool may already be destroyed.
    return self.granted ? std::error_code() : make_error_code(Errc::closed);
  }
  lock_.lock();
  --state_.waiters.parked;
  // If another caller now closes and joins the pool, join() waits until this caller calls leave().
  ++state_.users;
  ++state_.counters.rejected;
  // If this submitter was the first in the wait queue, the next submitter's task may be light
  // enough to fit. If no task holds this submitter's key, the next submitter with the same key
  // waits only for room.
  if (attributes != nullptr) state_.release_key(attributes->key);
  match_up();
  leave();
  return winner == detail::Claim::kStop ? Errc::cancelled : Errc::timed_out;
}

// Drops queued tasks until `item` fits, and accepts it. An item of weight 1 replaces exactly one
// task. It uses that task's room, so it takes no room that a blocked submitter could use. The lock
// is held from the first drop until the item is accepted. If the lock were released after a drain
// task was dropped, its sub-pool could submit a new drain task into the freed room.
std::error_code PoolCore::submit_dropping(PoolItem& item, Effects& effects) {
  const std::size_t weight = TaskQueue::weight_of(item);
  PoolItem dropped;  // Destroyed without the lock, because its destruction wakes waiters.
  std::vector<PoolItem> dropped_before;
  for (;;) {
    if (!state_.can_drop_for(item)) return answered(Errc::full, effects);
    const std::size_t most = std::min(weight == 1 ? 1 : 2 * weight, state_.queue.size());
    const bool can_push = state_.queue.can_replace_oldest(item);
    if (can_push && dropped_before.capacity() + 1 >= most) break;
    if (can_push ? !reserve_unlocked(dropped_before, most, lock_) : !grow_queue(item)) {
      return answered(std::make_error_code(std::errc::not_enough_memory), effects);
    }
    if (const auto accepted = accept_if_room(item, effects)) return answered(*accepted, effects);
  }
  state_.drop_oldest(dropped, item);
  while (weight > 1 && (!state_.has_room(weight) || state_.lacks_place_behind_key(item))) {
    dropped_before.push_back(std::move(dropped));
    state_.drop_oldest(dropped, item);
  }
  state_.accept(item);
  match_up(effects);
  return {};
}

void PoolCore::run_in_caller(PoolItem& item, std::uint64_t number) noexcept {
  PoolWorker self;
  self.number = number;
  runner_.run(item, self);
  lock_.lock();
  if (item.job != nullptr) (void)end_job(*std::exchange(item.job, nullptr), self);
  runner_.record(self);
  --state_.in_callers;
  state_.counters.count(self.outcome);
  state_.tell(self.effects);
  unlock(self.effects);
}

std::size_t PoolCore::push_some(std::span<PoolItem> items) noexcept {
  Effects effects;
  std::size_t pushed = 0;
  lock_.lock();
  while (pushed < items.size() && !items[pushed].empty() && state_.needs_only_push()) {
    state_.push(items[pushed]);
    ++pushed;
    if (state_.should_call_worker()) effects.wake(state_.workers.call());
  }
  unlock(effects);
  return pushed;
}

std::error_code PoolCore::answered(std::error_code error, Effects& effects) noexcept {
  if (error) ++state_.counters.rejected;
  unlock(effects);
  if (detail::is_tracing()) [[unlikely]] {
    using Kind = detail::TraceKind;
    detail::trace_text(error ? Kind::pool_refuse : Kind::pool_submit, options_->name);
  }
  return error;
}

detail::AttributedTask& PoolCore::take_spare_task() {
  {
    const detail::SpinGuard guard(lock_);
    if (detail::AttributedTask* const spare = spares_.take()) return *spare;
  }
  return *new detail::AttributedTask(root_);
}

}  // namespace weft::pool

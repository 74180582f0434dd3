#include "pool/core/pool_state.hpp"

#include <algorithm>
#include <weft/detail/invariant.hpp>

namespace weft::pool {

using detail::PoolItem;
using detail::Waiter;
using Kind = GrowPolicy::Kind;

namespace {

// Returns factor * limit, or SIZE_MAX if the product is too large, because users may choose any
// factor.
std::size_t scaled(double factor, std::size_t limit) noexcept {
  const double product = factor * static_cast<double>(limit);
  return product < 9e18 ? static_cast<std::size_t>(product) : SIZE_MAX;
}

}  // namespace

PoolState::PoolState(const PoolOptions& its_options, bool is_nested) noexcept
    : slots(its_options.capacity, its_options.queue_capacity),
      is_sub_pool(is_nested),
      workers(its_options.wake_order),
      options(its_options) {
  set_limit(workers.limit());
}

// ---- Tasks come in

bool PoolState::can_drop_for(const PoolItem& item) const noexcept {
  const std::size_t weight = TaskQueue::weight_of(item);
  if (queue.empty() || (weight > 1 && !slots.has_room_beside_running(weight))) return false;
  return weight <= options.queue_capacity || !queue.would_be_held_up(item);
}

void PoolState::drop_oldest(PoolItem& dropped, const PoolItem& newcomer) noexcept {
  lacks_place_behind_key(newcomer) ? queue.pop_oldest_held_up(dropped) : queue.pop_oldest(dropped);
  slots.drop(TaskQueue::weight_of(dropped));
  ++(TaskQueue::is_drain(dropped) ? counters.drains_over : counters.cancelled);
  if (const auto* attributes = TaskQueue::attributes_of(dropped)) release_key(attributes->key);
}

Submitter* PoolState::next_blocked() noexcept {
  BlockedSubmitters& blocked = waiters.blocked;
  Submitter* first = blocked.first_for_room();
  for (; first != nullptr && queue.would_be_held_up(first->item());
       first = blocked.first_for_room()) {
    blocked.wait_behind_key(*first);
  }
  Submitter* const behind_key = blocked.first_behind_key();
  if (behind_key != nullptr && (first == nullptr || behind_key->amount < first->amount) &&
      !lacks_place_behind_key(behind_key->item())) {
    first = behind_key;
  }
  if (first == nullptr || !has_room(TaskQueue::weight_of(first->item()))) return nullptr;
  return first;
}

bool PoolState::admit_one(PoolItem* instead_of_queue, Effects& effects) noexcept {
  while (Submitter* submitter = next_blocked()) {
    PoolItem& item = submitter->item();
    const bool has_place = instead_of_queue != nullptr ? TaskQueue::attributes_of(item) == nullptr
                                                       : queue.can_push(item);
    if (!has_place) return false;
    if (!waiters.blocked.claim(*submitter)) continue;
    if (submitter->waker) --waiters.parked;
    if (instead_of_queue != nullptr) {
      count_accepted(item);
      *instead_of_queue = std::move(item);
    } else {
      accept(item);
    }
    submitter->granted = true;
    effects.wake(*submitter);
    return true;
  }
  return false;
}

// ---- Tasks run

bool PoolState::take(PoolItem& item, int calls, Effects& effects) noexcept {
  WEFT_INVARIANT(!paused, "PoolState I6: no task begins to run while the pool is paused");
  if (queue.startable() == 0 && waiters.blocked.empty()) return false;
  if (queue.startable() == 0 && slots.can_start_newcomer() && admit_one(&item, effects)) {
    slots.start(1);
    if (calls == 0) return true;  // If calls > 0, the pool may have room for more tasks.
  } else {
    if (queue.startable() == 0) admit_blocked(effects);
    if (queue.startable() == 0) return false;
    if (!next_fits()) {
      // The task that has just ended may have made room for a blocked submitter, whose task may be
      // the next to run.
      admit_blocked(effects);
      if (!next_fits()) return false;
    }
    queue.pop(item);
    slots.start(TaskQueue::weight_of(item));
  }
  admit_blocked(effects);
  while (calls-- > 0 && workers.starting() < queue.startable() && workers.idle() > 0 &&
         next_fits()) {
    effects.wake(workers.call());
  }
  return true;
}

std::optional<bool> PoolState::answer(Condition condition, std::uint64_t count) const noexcept {
  bool has_come = false;
  bool never_comes = false;
  switch (condition) {
    case Condition::idle:
      has_come = is_idle();
      break;
    case Condition::paused:
      has_come = paused && runs_nothing();
      never_comes = !paused;
      break;
    case Condition::joined:
      has_come = is_joined();
      break;
    case Condition::counted:
      has_come = counters.ended() >= count;
      never_comes = is_joined();  // No task ends after the pool is joined.
      break;
  }
  return has_come || never_comes ? std::optional(has_come) : std::nullopt;
}

void PoolState::tell(Effects& effects) noexcept {
  WEFT_INVARIANT(!closed || !paused, "PoolState I6: a closed pool is not paused");
  tell_counted(effects);
  const auto tell_of = [&](Condition condition) {
    detail::WaitList& waiting = waiters.of(condition);
    if (waiting.empty()) [[likely]]
      return;
    if (const auto told = answer(condition, 0)) effects.end_waits(waiting, *told);
  };
  tell_of(Condition::idle);
  tell_of(Condition::paused);
  if (!closed) return;
  tell_of(Condition::joined);
  if (is_joined()) effects.end_waits(waiters.of(Condition::counted), false);
  if (only_ticker_is_left()) ticker.wake(effects);
}

// Wakes each caller whose awaited number of ended tasks has been reached, and finds the next number
// for which a caller waits.
void PoolState::tell_counted(Effects& effects) noexcept {
  if (!counters.is_awaited()) [[likely]]
    return;
  detail::WaitList& counted = waiters.of(Condition::counted);
  counters.next_awaited = UINT64_MAX;
  for (Waiter* next = counted.front(); next != nullptr;) {
    Waiter& waiter = *next;
    next = waiter.next;
    if (waiter.amount > counters.ended()) {
      counters.next_awaited = std::min(counters.next_awaited, waiter.amount);
      continue;
    }
    counted.erase(waiter);
    if (!detail::WaitList::try_claim(waiter)) continue;
    waiter.granted = true;
    effects.wake(waiter);
  }
}

void PoolState::return_slots(Effects& effects) noexcept {
  while (can_return_slots()) {
    Waiter& task = *waiters.reacquiring.claim_front();
    if (task.amount > 1) slots.unreserve(task.amount);
    reacquire(task.amount);
    effects.wake(task);
  }
}

// ---- Workers

bool PoolState::lacks_worker() noexcept {
  if (!is_sub_pool) return must_grow(queue.startable());
  if (waits_at_parent) return false;
  // During a pause, callers may be blocked although there is room.
  const std::size_t blocked = next_blocked() != nullptr ? waiters.blocked.size() : 0;
  if (paused) return must_grow(blocked);
  return must_grow((queue.startable() > 0 && next_fits() ? queue.startable() : 0) + blocked);
}

void PoolState::retire_self(Effects& effects) noexcept {
  workers.leave();
  pass_work_on(effects);
}

void PoolState::begin_clearing(Effects& effects) noexcept {
  workers.begin_clearing();
  pass_work_on(effects);
}

void PoolState::pass_work_on(Effects& effects) noexcept {
  if (closed && queue.empty()) retire_all_without_task(effects);
  workers.retire_surplus(effects);
  admit_blocked(effects);
}

// Retires the idle workers of a closed pool that has no queued tasks. For a sub-pool, also retires
// drain tasks that have not begun, because the parent may run them only much later. Keeps these
// drain tasks while a nested sub-pool waits for room.
void PoolState::retire_all_without_task(Effects& effects) noexcept {
  workers.retire_idle(effects);
  if (!is_sub_pool || !waiters.blocked.empty()) return;
  while (workers.has_fresh()) workers.retire_fresh();
}

void PoolState::set_limit(std::size_t limit) noexcept {
  // A closed pool has no autoscaler.
  const bool is_moving =
      options.grow.kind() == Kind::load_factor && least_limit() < slots.capacity() && !closed;
  raise_at = SIZE_MAX;
  workers.set_limit(is_moving ? std::clamp(limit, least_limit(), slots.capacity())
                              : slots.capacity());
  WEFT_INVARIANT(workers.limit() <= slots.capacity(), "PoolState I1: the limit is in the capacity");
  if (!is_moving) return;
  if (!autoscaler.is_running()) {
    raise_at = 0;
  } else if (workers.limit() < slots.capacity()) {
    raise_at = scaled(options.grow.factor().up, workers.limit());
  }
}

void PoolState::raise_limit() noexcept {
  const std::size_t limit = workers.limit();
  set_limit(limit + std::min(options.grow.factor().step, slots.capacity() - limit));
}
void PoolState::lower_limit() noexcept {
  const std::size_t limit = workers.limit();
  set_limit(limit - std::min(options.grow.factor().step, limit));
}

// ---- The pool as a whole

void PoolState::close(Close mode, TaskQueue& dropped, Effects& effects) noexcept {
  closed = true;
  set_limit(workers.limit());
  is_pause_wanted = false;
  pause_holders = 0;
  ++open_number;
  paused = false;
  detail::WaitList sub_pools;  // Sub-pools keep waiting, because they still have accepted tasks.
  while (Submitter* submitter = waiters.blocked.claim_front()) {
    if (!submitter->waker) {
      sub_pools.push_back(*submitter);
      continue;
    }
    --waiters.parked;
    ++counters.rejected;
    effects.wake(*submitter);  // Ends the wait; submit() then returns an error.
  }
  while (Waiter* sub_pool = sub_pools.claim_front()) waiters.blocked.push_back(*sub_pool);
  if (mode != Close::drain) {
    queue.move_all_to(dropped);
    const bool has_drains = counters.drains != counters.drains_over;
    const std::size_t drains = has_drains ? dropped.count_drains() : 0;
    counters.cancelled += dropped.size() - drains;
    counters.drains_over += drains;
    slots.drop_queued();
    return_slots(effects);
    workers.retire_surplus(effects);
  }
  if (mode == Close::cancel) is_stopped = true;
}

bool PoolState::has_accepted() noexcept {
  if (!queue.empty()) return true;
  const Waiter* waiter = waiters.blocked.first_for_room();
  while (waiter != nullptr && waiter->waker) waiter = waiter->next;  // Skips submitters.
  return waiter != nullptr;
}

PoolStats PoolState::read() const noexcept {
  PoolStats stats;
  stats.live = workers.live();
  stats.busy = slots.running();
  stats.idle = workers.live() - slots.running();
  stats.released = slots.released();
  stats.in_callers = in_callers;
  stats.queued = queue.size();
  stats.blocked = waiters.parked;
  stats.in_sub_pools = counters.drains - counters.drains_over;
  stats.submitted = counters.submitted - counters.drains;
  stats.completed = counters.completed;
  stats.failed = counters.failed;
  stats.cancelled = counters.cancelled;
  stats.rejected = counters.rejected;
  stats.started = workers.started();
  stats.retired = workers.retired();
  return stats;
}

}  // namespace weft::pool

// The state of a pool, and all decisions about it. The file uses no lock, no fiber and no clock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <weft/detail/pool_job.hpp>
#include <weft/pool_options.hpp>

#include "pool/core/background_fiber.hpp"
#include "pool/core/counters.hpp"
#include "pool/core/effects.hpp"
#include "pool/core/slots.hpp"
#include "pool/core/waiters.hpp"
#include "pool/core/worker_set.hpp"
#include "pool/queue/task_queue.hpp"

namespace weft::pool {

// The state has no lock of its own; the lock of PoolCore guards it. Its functions change the value,
// allocate nothing, and store the required actions in Effects.
// Invariants, in addition to the invariants of the fields
//   I1  workers.live() <= workers.limit() <= slots.capacity(), with two exceptions. First, a worker
//       stays live while it runs a task that began under a larger limit, or that has taken its
//       slots back. Second, surplus workers may still be starting, or destroying FiberLocal values.
//   I2  If the next task fits, either a worker is starting, or no worker is idle and no other
//       worker can be started. In the second case, each live worker looks for a task when its own
//       task ends. During a pause, I2 requires only one live worker. I2 ensures that each accepted
//       task runs.
//   I3  Submitters are blocked only while the task of the first submitter does not fit. If no
//       memory is available, submitters may stay blocked until the next task ends. While submitters
//       are blocked, each pop from the queue makes room for another task. No submitter blocks once
//       the pool is closed.
//   I4  Tasks that have given their slots back wait for slots only while too few are available.
//   I5  `users` includes each fiber of the pool, from before its spawn until its last access to the
//       pool.
//   I6  No task begins to run while the pool is paused. A closed pool is not paused.
struct PoolState {
  PoolState(const PoolOptions& options, bool is_sub_pool) noexcept;

  // --- Tasks come in ---

  // Returns whether a new task cannot be accepted now: there is no room, or a submitter is already
  // waiting.
  [[nodiscard]] bool must_wait(const detail::PoolItem& item, std::size_t weight) const noexcept {
    if (!has_room(weight) || !waiters.blocked.nobody_waits_for_room()) return true;
    if (item.job == nullptr || !queue.would_be_held_up(item)) [[likely]]
      return false;
    return !waiters.blocked.empty() || lacks_place_behind_key(item);
  }
  [[nodiscard]] bool has_room(std::size_t weight) const noexcept {
    return slots.has_room(weight, queue.held_up_weight());
  }
  [[nodiscard]] bool lacks_place_behind_key(const detail::PoolItem& item) const noexcept {
    return queue.would_be_held_up(item) &&
           !slots.has_place_behind_key(queue.held_up_weight(), TaskQueue::weight_of(item));
  }
  void accept(detail::PoolItem& item) noexcept {
    count_accepted(item);
    queue.push(std::move(item));
  }
  // Returns whether push() suffices to accept a task without attributes, as it usually does.
  [[nodiscard]] bool needs_only_push() const noexcept {
    return !closed && slots.has_room() && waiters.blocked.nobody_waits_for_room() &&
           queue.has_room_for_plain() && !must_grow(queue.startable() + 1);
  }
  // Requires that needs_only_push() returns true, and that the item is not a drain task.
  void push(detail::PoolItem& item) noexcept {
    accept_weight(1);
    queue.push_plain(std::move(item));
  }
  // Requires that the pool has no room for the item. Returns whether the pool can make room by
  // dropping other tasks.
  [[nodiscard]] bool can_drop_for(const detail::PoolItem& item) const noexcept;
  // Drops the task that has been queued longest. If `newcomer` must wait for a key and the queue
  // has no place for it, drops the oldest task that waits for a key instead.
  void drop_oldest(detail::PoolItem& dropped, const detail::PoolItem& newcomer) noexcept;
  // Admits blocked submitters while their tasks fit.
  void admit_blocked(Effects& effects) noexcept {
    while (!waiters.blocked.empty() && has_place_at_parent() && admit_one(nullptr, effects)) {
    }
  }
  // Selects the longest-blocked submitter. Skips a submitter if its task must wait for a key and
  // the queue has no place for it. Returns null if the selected submitter's task does not fit.
  [[nodiscard]] Submitter* next_blocked() noexcept;
  // Admits the next blocked submitter, if there is room in the queue's memory. If
  // `instead_of_queue` is not null, admits only a plain task, and moves it to `*instead_of_queue`.
  // Returns false if no submitter was admitted.
  [[nodiscard]] bool admit_one(detail::PoolItem* instead_of_queue, Effects& effects) noexcept;
  // Called when a task with the key has ended or was dropped, or when a submitter with the key has
  // given up.
  void release_key(const TaskKey& key) noexcept {
    if (!waiters.blocked.empty() && key.is_set() && !queue.is_held(key)) {
      waiters.blocked.release_key(key);
    }
  }
  // Returns whether a submitter is blocked although the pool has room, because the queue has no
  // memory for another plain task.
  [[nodiscard]] bool lacks_memory_for_blocked() const noexcept {
    return !waiters.blocked.empty() && slots.has_room() && !queue.has_room_for_plain();
  }
  // Returns whether a worker that starts no task must call match_up() to admit blocked submitters.
  // This is necessary if the pool has room for a task, but is paused or has no memory for another
  // plain task in its queue.
  [[nodiscard]] bool must_admit_without_start() const noexcept {
    return !waiters.blocked.empty() && slots.has_room() && (paused || !queue.has_room_for_plain());
  }

  // --- Tasks run ---

  [[nodiscard]] bool next_fits() const noexcept { return slots.can_start(queue.next_weight()); }
  // Takes the next accepted task or, if there is none, the task of a blocked submitter. Wakes at
  // most `calls` idle workers for the remaining tasks.
  [[nodiscard]] bool take(detail::PoolItem& item, int calls, Effects& effects) noexcept;
  // Returns whether end_and_pop() suffices at the end of a plain task, as it usually does: there is
  // no waiter to wake, no worker to wake or retire, and no submitter to admit. Otherwise the caller
  // must call end() and take().
  [[nodiscard]] bool needs_only_pop() const noexcept {
    return queue.has_only_plain() && slots.can_start_newcomer() && waiters.blocked.empty() &&
           waiters.reacquiring.empty() && !paused && !workers.has_surplus() &&
           counters.ended() + 1 < counters.next_awaited;
  }
  // Requires that needs_only_pop() returns true.
  void end_and_pop(detail::PoolItem& item, detail::PoolJob::Outcome outcome) noexcept {
    counters.count(outcome);
    slots.pass_on();
    queue.pop_plain(item);
  }
  // Returns how many submitted tasks are not in the queue, including tasks that were never queued.
  [[nodiscard]] std::uint64_t left_queue() const noexcept {
    return counters.submitted - queue.size();
  }
  void end(std::size_t weight, detail::PoolJob::Outcome outcome) noexcept {
    counters.count(outcome);
    slots.end(weight);
  }
  // runs_nothing() returns whether no task is running. is_idle() also requires that no task is
  // queued. is_joined() also requires that the pool is closed and has no user left.
  [[nodiscard]] bool runs_nothing() const noexcept {
    return slots.running() + slots.released() + in_callers == 0;
  }
  [[nodiscard]] bool is_idle() const noexcept { return runs_nothing() && queue.empty(); }
  [[nodiscard]] bool is_joined() const noexcept {
    // `parked` includes submitters that gave up, because each still has to lock the pool.
    return closed && users + in_callers + waiters.parked == 0 && queue.empty();
  }
  [[nodiscard]] bool only_ticker_is_left() const noexcept {
    return closed && ticker.is_running() && users == 1 && in_callers == 0 && queue.empty();
  }
  // Returns true if the condition is true, false if it can never become true, and nothing if it may
  // become true later.
  [[nodiscard]] std::optional<bool> answer(Condition condition, std::uint64_t count) const noexcept;
  // Ends the waits for conditions that are true, or can never become true. After its next unlock, a
  // caller that is not counted in `users` must not access the pool, because a joiner may have
  // destroyed it.
  void tell(Effects& effects) noexcept;
  // Like tell(), but wakes only callers whose awaited number of ended tasks has been reached.
  void tell_counted(Effects& effects) noexcept;

  // --- Slots that tasks give back while they wait ---

  void release(std::size_t weight) noexcept {
    slots.release(weight);
    workers.release();
  }
  // Returns whether a task may lend its slot to a new task for which it waits. This requires that
  // the new task would start next, and that no worker is available for it.
  [[nodiscard]] bool may_lend_slot() const noexcept {
    return !closed && !paused && queue.startable() == 0 && slots.can_start_newcomer() &&
           workers.idle() + workers.starting() == 0 && !workers.has_surplus() &&
           waiters.blocked.empty() && waiters.reacquiring.empty();
  }
  // Returns the number of the task that now has the slot.
  [[nodiscard]] std::uint64_t lend_slot() noexcept {
    slots.lend();
    ++counters.submitted;
    return left_queue();
  }
  void end_loan(detail::PoolJob::Outcome outcome) noexcept {
    slots.end_loan();
    counters.count(outcome);
  }
  [[nodiscard]] bool must_wait_for_slots(std::size_t weight) const noexcept {
    return !waiters.reacquiring.empty() || !slots.can_reacquire(weight);
  }
  // Returns whether the task that has waited longest for its slots could take them now.
  [[nodiscard]] bool can_return_slots() noexcept {
    const detail::Waiter* const first = waiters.reacquiring.front();
    return first != nullptr && slots.can_reacquire(first->amount);
  }
  void reacquire(std::size_t weight) noexcept {
    slots.reacquire(weight);
    workers.reacquire();
  }
  // Gives free slots to the tasks that have waited for them longest. If I1 is violated on return,
  // the caller must retire itself or the surplus workers.
  void return_slots(Effects& effects) noexcept;

  // --- Workers ---

  // Returns true if an idle worker can be woken, and the workers that are starting are too few for
  // the queued tasks.
  [[nodiscard]] bool should_call_worker() const noexcept {
    return workers.idle() > 0 && workers.starting() * kTasksPerWake < queue.startable() &&
           !paused && next_fits();
  }
  void call_workers(Effects& effects) noexcept {
    while (should_call_worker()) effects.wake(workers.call());
  }
  // Returns whether, with `items` queued tasks, another worker must be started, or the worker limit
  // must be raised.
  [[nodiscard]] bool must_grow(std::size_t items) const noexcept {
    return (workers.has_place() && items > workers.idle() + workers.starting() &&
            (workers.starting() < kStartsAhead || is_sub_pool)) ||
           slots.running() + items > raise_at;
  }
  // Returns must_grow() for the current queue. For a sub-pool, returns whether it should request
  // another drain task from its parent.
  [[nodiscard]] bool lacks_worker() noexcept;
  [[nodiscard]] std::size_t kept_workers() const noexcept {
    return std::min(options.min_workers, slots.capacity());
  }
  // Removes the calling worker from the live workers, because the pool has too many workers or no
  // more tasks.
  void retire_self(Effects& effects) noexcept;
  // Retires the calling worker, but lets it first destroy the FiberLocal values of its tasks. No
  // other worker replaces it meanwhile. After that, the retired worker looks for a task again.
  void begin_clearing(Effects& effects) noexcept;
  [[nodiscard]] bool coldest_may_go(std::size_t kept) const noexcept {
    return workers.coldest_is_stale() && queue.startable() == 0 && workers.staying() > kept;
  }
  void retire_all_without_task(Effects& effects) noexcept;

  // --- How many workers may live; see services/autoscaler.cpp ---

  [[nodiscard]] std::size_t least_limit() const noexcept {
    return std::max<std::size_t>(kept_workers(), 1);
  }
  // Sets workers.limit() to the nearest number that the policy and the capacity allow.
  void set_limit(std::size_t limit) noexcept;
  void raise_limit() noexcept;
  void lower_limit() noexcept;

  // --- The pool as a whole ---

  [[nodiscard]] std::size_t capacity() const noexcept { return slots.capacity(); }
  void resize(std::size_t capacity) noexcept {
    slots.resize(capacity);
    set_limit(workers.limit());
  }
  // pause() pauses the pool until resume(). hold_pause() pauses the pool until release_pause() is
  // called with the number that hold_pause() returned.
  void pause() noexcept {
    if (!closed) paused = is_pause_wanted = true;
  }
  [[nodiscard]] std::uint64_t hold_pause() noexcept {
    if (closed) return 0;
    paused = true;
    ++pause_holders;
    return open_number;
  }
  // Returns whether this call removed the last reason for the pause. If so, the caller must end the
  // pause.
  [[nodiscard]] bool resume() noexcept {
    return std::exchange(is_pause_wanted, false) && pause_holders == 0;
  }
  [[nodiscard]] bool release_pause(std::uint64_t number) noexcept {
    return number == open_number && pause_holders > 0 && --pause_holders == 0 && !is_pause_wanted;
  }
  // Closes the pool. Unless `mode` is Close::drain, moves the queued tasks to `dropped`.
  void close(Close mode, TaskQueue& dropped, Effects& effects) noexcept;
  [[nodiscard]] PoolStats read() const noexcept;

  // --- For a sub-pool, whose workers are drain tasks of its parent ---

  // Returns whether another drain task may wait until the parent has room.
  [[nodiscard]] bool may_wait_for_parent() const noexcept {
    return queue.startable() < workers.starting() ||
           queue.startable() - workers.starting() < options.queue_capacity;
  }
  [[nodiscard]] bool has_place_at_parent() const noexcept {
    return !is_sub_pool || may_wait_for_parent();
  }
  // Counts an accepted drain task as a starting worker.
  void begin_drain() noexcept {
    waits_at_parent = false;
    workers.begin_start();
  }
  [[nodiscard]] bool relies_on_drain_in_queue() const noexcept {
    return waits_at_parent && may_wait_for_parent();
  }
  // Returns whether a submitter must request a drain task before it blocks. If a drain task is
  // already pending, it serves all blocked submitters.
  [[nodiscard]] bool must_wait_at_parent(std::size_t weight) const noexcept {
    return is_sub_pool && !waits_at_parent && workers.starting() == 0 &&
           workers.live() < slots.capacity() && has_room(weight);
  }
  // Returns whether a task is queued, or a nested sub-pool waits for room.
  [[nodiscard]] bool has_accepted() noexcept;

  // One starting worker is enough for this many queued tasks. If the tasks are short, the starting
  // worker runs them one after another; otherwise it starts more workers (README.md).
  static constexpr std::size_t kTasksPerWake = 16;
  // While this many workers of a pool without a parent are starting, submit() starts no more. If
  // the queue needs more, each of them starts another when it takes its first task (README.md).
  static constexpr std::size_t kStartsAhead = 16;

  // The fields that each task changes are adjacent, so that few cache lines move between the
  // processors that use the pool.
  Slots slots;
  Counters counters;
  TaskQueue queue;
  bool closed = false;
  bool paused = false;
  bool is_pause_wanted = false;  // pause() sets it; resume() clears it.
  bool is_stopped = false;       // Set by Close::cancel, before the tasks get the stop request.
  bool closing = false;          // Set before the sub-pools are closed.
  bool waits_at_parent = false;  // This sub-pool is in the parent's wait queue with a drain task.
  const bool is_sub_pool;
  std::size_t raise_at = SIZE_MAX;  // A load above this value raises workers.limit().
  WorkerSet workers;
  Waiters waiters;
  std::size_t in_callers = 0;  // The number of tasks that run in submit().
  std::size_t users = 0;
  std::size_t pause_holders = 0;  // The number of PauseScopes.
  std::uint64_t open_number = 1;  // Each close() increments it, which ends earlier pauses.
  BackgroundFiber reaper;
  BackgroundFiber autoscaler;
  BackgroundFiber ticker;
  const PoolOptions& options;

 private:
  // Called when a worker retires, or begins to destroy its FiberLocal values. Retires surplus
  // workers, and all idle workers of a closed pool with an empty queue. Admits blocked submitters.
  void pass_work_on(Effects& effects) noexcept;
  void accept_weight(std::size_t weight) noexcept {
    slots.accept(weight);
    ++counters.submitted;
  }
  void count_accepted(const detail::PoolItem& item) noexcept {
    accept_weight(TaskQueue::weight_of(item));
    if (!TaskQueue::is_drain(item)) [[likely]]
      return;
    ++counters.drains;
    item.job->drain_accepted();
  }
};

}  // namespace weft::pool

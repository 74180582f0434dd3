// The inside of a FiberPool; README.md tells how it works and why so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <system_error>
#include <weft/detail/spin_lock.hpp>
#include <weft/detail/thread_annotations.hpp>
#include <weft/detail/trace_event.hpp>
#include <weft/pool.hpp>

#include "pool/core/listing.hpp"
#include "pool/core/nesting.hpp"
#include "pool/core/pool_state.hpp"
#include "pool/core/spare_tasks.hpp"
#include "pool/core/task_runner.hpp"

namespace weft::pool {

// The one lock of a pool, which its sub-pools share, around its state, and what is done about it:
// fibers are started, waiters are woken and parked, tasks run. Each entry locks, changes the state,
// collects Effects, unlocks, and performs them: the lock is never held across an allocation, user
// code, or a wake.
class PoolCore {
 public:
  // The bodies of a pool's fibers: handed down, because they call what stands above the core.
  struct Bodies {
    BackgroundFiber::Body worker;
    BackgroundFiber::Body reaper;
    BackgroundFiber::Body autoscaler;
    BackgroundFiber::Body ticker;
    // Of none of them: runs a task in place of a worker.
    void (*stranded)(PoolCore& core, detail::PoolItem& item, Worker& self);
  };

  PoolCore(PoolOptions&& options, const Bodies& bodies, PoolCore* parent);
  ~PoolCore();
  PoolCore(const PoolCore&) = delete;
  PoolCore& operator=(const PoolCore&) = delete;
  // Once, before any other call.
  void set_nesting(std::unique_ptr<Nesting> nesting) noexcept {
    nesting_ = std::move(nesting);
    nesting_->begin();
  }
  [[nodiscard]] Nesting& nesting() const noexcept { return *nesting_; }

  // --- submit.cpp: tasks come in ---

  // The way of most tasks: room, a push, and perhaps a wake. False, and nothing has happened, if
  // more is to be done: by submit().
  [[nodiscard]] bool submit_at_once(detail::PoolItem& item) noexcept;
  // Refuses an item that could not be accepted in any pool: it is empty, cancelled or too late.
  [[nodiscard]] std::error_code check(detail::PoolItem& item) noexcept;
  // The rest to be done, with the item unmoved: submit_blocking(), from within a blocking scope; or
  // run_in_caller(), which it has been counted for.
  enum class Next : std::uint8_t { nothing, block, run_in_caller };
  struct Answer {
    Accepted accepted = {};
    Next next = Next::nothing;
    std::uint64_t number = 0;  // The number that TaskInfo reports.
  };
  // Of an item that was checked. `when_full` says what is done when there is no room.
  [[nodiscard]] Answer submit(detail::PoolItem& item, OnFull when_full);
  [[nodiscard]] std::error_code submit_blocking(detail::PoolItem& item, const Until& until);
  void run_in_caller(detail::PoolItem& item, std::uint64_t number) noexcept;
  // Accepts as many of the first items as need nothing but a push, under one hold of the lock.
  // Returns how many; items have no attributes.
  [[nodiscard]] std::size_t push_some(std::span<detail::PoolItem> items) noexcept;
  // A job for a submit with options. Throws std::bad_alloc.
  [[nodiscard]] detail::AttributedTask& take_spare_task();

  // --- lifecycle.cpp: the pool as a whole ---

  // Starts what is to be there before the first task.
  [[nodiscard]] std::error_code start() noexcept;
  void close(Close mode) noexcept;
  // Returns false if it was open, or has to stay closed. The parent's state is under its own lock.
  [[nodiscard]] bool reopen() WEFT_NOT_ANALYZED;
  // A runtime ends, perhaps the one of the workers: it would wait for them.
  void retire_idle_workers() noexcept;
  // Ends the pause if `call` on the state returns that no caller needs it any more.
  template <class Call>
  void end_pause_if(Call call) noexcept;
  // Parks the caller, which is no task of the pool. Returns false if it is not to come, or the time
  // was up.
  [[nodiscard]] bool wait(Condition condition, std::uint64_t count, const Until& until) noexcept;
  // The result of `call` on the state, under the lock: a member of PoolState, say.
  template <class Call>
  auto locked(Call call) noexcept {
    const detail::SpinGuard guard(lock_);
    return std::invoke(call, state_);
  }
  // The same with a change that may let tasks, workers or callers go on.
  template <class Call>
  void change(Call call) noexcept {
    lock_.lock();
    std::invoke(call, state_);
    match_up();
  }
  [[nodiscard]] std::size_t available() noexcept;
  [[nodiscard]] std::stop_token stop_token() noexcept;
  [[nodiscard]] PoolTimings timings() noexcept;

  [[nodiscard]] const PoolOptions& options() const noexcept { return *options_; }
  [[nodiscard]] const TaskRunner& runner() const noexcept { return runner_; }
  // Tells pools of one name apart.
  [[nodiscard]] unsigned number() const noexcept { return listing_.number(); }
  [[nodiscard]] PoolCore* parent() const noexcept { return parent_; }
  // The outermost of the parents, or this pool: the same for all pools whose tasks give their slots
  // back while they wait for one another.
  [[nodiscard]] PoolCore& root() const noexcept { return root_; }

  // By a task of the pool without a weight, which waits until the item's task has ended in its
  // slot; see nested/lent_slot.cpp. Returns false if that is not the next to start, or has a
  // worker. Else the caller owes a run_in_lent_slot().
  [[nodiscard]] bool lend_slot(detail::PoolItem& item, std::uint64_t& number) noexcept;
  void run_in_lent_slot(detail::PoolItem& item, std::uint64_t number) noexcept;
  // By a task of the pool that has given its slots back; see nested/blocking_scope.cpp. Parks.
  void reacquire_slots(std::size_t weight) noexcept;

  // --- For workers, nested/ and services/, which have the lock in their hands. A call that
  // requires it, and may have to do what must not be done under it, releases it meanwhile. ---

  [[nodiscard]] detail::SpinLock& spin_lock() noexcept WEFT_RETURNS_LOCK(lock_) { return lock_; }
  void lock() noexcept WEFT_ACQUIRES(lock_) { lock_.lock(); }
  void unlock() noexcept WEFT_RELEASES(lock_) { lock_.unlock(); }
  // With what a change under the lock asks for afterwards.
  void unlock(Effects& effects) noexcept WEFT_RELEASES(lock_) {
    lock_.unlock();
    effects.perform();
  }
  [[nodiscard]] PoolState& state() noexcept WEFT_REQUIRES(lock_) { return state_; }
  // The same for one who has the lock by the name of another pool of the root.
  [[nodiscard]] PoolState& shared_state() noexcept WEFT_NOT_ANALYZED { return state_; }
  // After a change other than the end of a task, matches tasks, workers, blocked submitters and
  // tasks that wait for their slots. Carries out what follows from it.
  void match_up(Effects& effects) noexcept WEFT_RELEASES(lock_);
  void match_up() noexcept WEFT_RELEASES(lock_) {
    Effects none;
    match_up(none);
  }
  // Accepts the item, or says why it cannot be, or gives no answer if there is no room. May release
  // the lock meanwhile.
  [[nodiscard]] std::optional<std::error_code> accept_if_room(detail::PoolItem& item,
                                                              Effects& effects) noexcept
      WEFT_REQUIRES(lock_);
  // Makes room for `item` in the queue's memory. Returns false when there is none.
  [[nodiscard]] bool grow_queue(const detail::PoolItem& item) noexcept WEFT_REQUIRES(lock_);
  // Tasks may have relied on a fiber that could not be started. If no worker lives, the caller runs
  // the accepted tasks and the blocked submitters' tasks: they may be drains of sub-pools.
  void run_stranded_tasks() noexcept WEFT_REQUIRES(lock_);
  // One step towards what must_grow() asked for; the caller asks again. Returns what kept a fiber
  // from being started.
  [[nodiscard]] std::error_code grow(std::size_t items) noexcept WEFT_REQUIRES(lock_);
  // Starts a background fiber as a user of the pool.
  [[nodiscard]] std::error_code start_background(BackgroundFiber& fiber,
                                                 BackgroundFiber::Body body) noexcept
      WEFT_REQUIRES(lock_);
  [[nodiscard]] std::error_code start_reaper() noexcept WEFT_REQUIRES(lock_) {
    return start_background(state_.reaper, bodies_.reaper);
  }
  // Parks a background fiber.
  void sleep(BackgroundFiber& fiber, Deadline until) noexcept WEFT_REQUIRES(lock_);
  // The last access of a user to the pool.
  void leave() noexcept {
    lock_.lock();
    unlock_and_leave();
  }
  void unlock_and_leave() noexcept WEFT_RELEASES(lock_);

  // --- The end of a task: end_task.cpp ---

  // A task has ended, whose slot is still counted: its job is settled, and the slot is free.
  // Releases the lock meanwhile if the job has no other reference: its destruction runs user code.
  void end_task(Worker& self, detail::PoolItem& item) noexcept WEFT_REQUIRES(lock_);
  // The same in parts. Returns the task's weight.
  [[nodiscard]] std::size_t end_job(detail::PoolJob& job, Worker& self) noexcept
      WEFT_REQUIRES(lock_);
  // Returns true if the pool keeps the job for another task.
  [[nodiscard]] bool end_attributes(detail::TaskAttributes& attributes) noexcept
      WEFT_REQUIRES(lock_);
  void end_slots(const Worker& self, std::size_t weight) noexcept WEFT_REQUIRES(lock_);

 private:
  // Calls a worker for what has been accepted, if one is to be called.
  void announce_accepted() noexcept WEFT_RELEASES(lock_);
  // submit.cpp
  [[nodiscard]] std::error_code submit_dropping(detail::PoolItem& item, Effects& effects)
      WEFT_RELEASES(lock_);
  // The end of a submit: returns what it is to answer.
  [[nodiscard]] std::error_code answered(std::error_code error, Effects& effects) noexcept
      WEFT_RELEASES(lock_);

  // dispatch.cpp. They release the lock meanwhile.
  [[nodiscard]] std::error_code start_worker() noexcept WEFT_REQUIRES(lock_);
  // Starts a fiber of the pool, which is a user of it. Returns what kept it from being started: a
  // pool answers with codes where weft::go() throws.
  [[nodiscard]] std::error_code spawn_user(BackgroundFiber::Body body) noexcept
      WEFT_REQUIRES(lock_);
  [[nodiscard]] std::error_code start_worker_for(const detail::PoolItem& item,
                                                 Effects& effects) noexcept WEFT_REQUIRES(lock_);

  // The nesting takes this pool's lock, which it does not know by name.
  void lock_with_sub_pools_closed(Close mode) noexcept WEFT_ACQUIRES(lock_) WEFT_NOT_ANALYZED {
    nesting_->lock_with_sub_pools_closed(mode);
  }

  const std::unique_ptr<const PoolOptions> options_;
  const Bodies& bodies_;
  TaskRunner runner_;
  PoolCore* const parent_;
  PoolCore& root_;
  std::unique_ptr<Nesting> nesting_;

  detail::SpinLock own_lock_;  // Used if it has no parent.
  detail::SpinLock& lock_;
  PoolState state_ WEFT_GUARDED_BY(lock_);
  SpareTasks spares_ WEFT_GUARDED_BY(lock_);
  // Replaced when the pool is opened after a cancel.
  std::stop_source stop_source_ WEFT_GUARDED_BY(lock_);
  const Listing listing_{*this};  // Ends first.
};

inline void PoolCore::announce_accepted() noexcept {
  Worker* const called = state_.should_call_worker() ? &state_.workers.call() : nullptr;
  lock_.unlock();
  if (detail::is_tracing()) [[unlikely]]
    detail::trace_text(detail::TraceKind::pool_submit, options_->name);
  if (called != nullptr) detail::wake(called->waker);
}

inline bool PoolCore::submit_at_once(detail::PoolItem& item) noexcept {
  if (runner_.is_measuring() || item.empty() || TaskQueue::attributes_of(item) != nullptr)
      [[unlikely]]
    return false;
  lock_.lock();
  if (!state_.needs_only_push()) [[unlikely]] {
    lock_.unlock();
    return false;
  }
  state_.push(item);
  announce_accepted();
  return true;
}

template <class Call>
void PoolCore::end_pause_if(Call call) noexcept {
  lock_.lock();
  if (!std::invoke(call, state_)) return lock_.unlock();
  Effects effects;
  state_.paused = false;
  state_.tell(effects);
  match_up(effects);
}

}  // namespace weft::pool

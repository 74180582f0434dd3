// The implementation of FiberPool; README.md explains how it works and why.
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

// Contains the only lock of a pool, which its sub-pools share, and the state that the lock guards.
// Carries out the decisions of the state: starts fibers, wakes and parks waiters, and runs tasks.
// Each operation locks, changes the state, collects Effects, unlocks, and performs the Effects.
// Therefore no thread holds the lock while it allocates memory, runs user code or wakes a fiber.
class PoolCore {
 public:
  // The functions that a pool's fibers run. FiberPool passes them, because PoolCore must not name
  // functions that call higher layers.
  struct Bodies {
    BackgroundFiber::Body worker;
    BackgroundFiber::Body reaper;
    BackgroundFiber::Body autoscaler;
    BackgroundFiber::Body ticker;
    // Runs a task in place of a worker, if no worker is live and the caller could not start one.
    void (*stranded)(PoolCore& core, detail::PoolItem& item, PoolWorker& self);
  };

  PoolCore(PoolOptions&& options, const Bodies& bodies, PoolCore* parent);
  ~PoolCore();
  PoolCore(const PoolCore&) = delete;
  PoolCore& operator=(const PoolCore&) = delete;
  // Must be called once, before any other function.
  template <class N>
  void make_nesting() {
    nesting_.make<N>(*this);
    nesting_->begin();
  }
  [[nodiscard]] Nesting& nesting() const noexcept { return *nesting_; }

  // --- submit.cpp: accepts tasks ---

  // The fast path for most tasks: checks for room, pushes the item, and wakes a worker if needed.
  // Returns false, and changes nothing, if the caller must call submit() instead.
  [[nodiscard]] bool submit_at_once(detail::PoolItem& item) noexcept;
  // Returns an error if the item is empty, cancelled or past its deadline: no pool could accept it.
  [[nodiscard]] std::error_code check(detail::PoolItem& item) noexcept;
  // What the caller must do next. For a value other than `nothing`, the item has not been moved.
  // For `block`, the caller must call submit_blocking() within a blocking scope. For
  // `run_in_caller`, it must call run_in_caller(); the pool already counts the task as running.
  enum class Next : std::uint8_t { nothing, block, run_in_caller };
  struct Answer {
    Accepted accepted = {};
    Next next = Next::nothing;
    std::uint64_t number = 0;  // The task's number, as in TaskInfo.
  };
  // Submits an item that check() has accepted. `when_full` selects what happens if there is no
  // room.
  [[nodiscard]] Answer submit(detail::PoolItem& item, OnFull when_full);
  [[nodiscard]] std::error_code submit_blocking(detail::PoolItem& item, const Until& until);
  void run_in_caller(detail::PoolItem& item, std::uint64_t number) noexcept;
  // Accepts the leading items that require only a push, and locks only once. Returns their number.
  // Requires items without attributes.
  [[nodiscard]] std::size_t push_some(std::span<detail::PoolItem> items) noexcept;
  // Returns a job for a task that is submitted with options. Throws std::bad_alloc.
  [[nodiscard]] detail::AttributedTask& take_spare_task();

  // --- lifecycle.cpp: controls the pool as a whole ---

  // Allocates the queue's memory and starts workers and the ticker, if the options require it.
  [[nodiscard]] std::error_code start() noexcept;
  void close(Close mode) noexcept;
  // Returns false if the pool was open, or must stay closed. Excluded from thread-safety analysis,
  // because it also accesses the parent's state, under the parent's lock.
  [[nodiscard]] bool reopen() WEFT_NOT_ANALYZED;
  // The runtime calls this function when it ends, so that it does not wait for idle workers.
  void retire_idle_workers() noexcept;
  // Calls `call` on the state, and ends the pause if `call` returns true. `call` returns whether it
  // has removed the last reason for the pause.
  template <class Call>
  void end_pause_if(Call call) noexcept;
  // Parks the caller, which must not be a task of the pool, until the condition is true. Returns
  // false if it can never become true, or if `until` ended the wait.
  [[nodiscard]] bool wait(Condition condition, std::uint64_t count, const Until& until) noexcept;
  // Calls `call`, which may be a member of PoolState, under the lock, and returns the result.
  template <class Call>
  auto locked(Call call) noexcept {
    const detail::SpinGuard guard(lock_);
    return std::invoke(call, state_);
  }
  // Calls `call` on the state under the lock. Then calls match_up(), because the change may let
  // tasks, workers or callers continue.
  template <class Call>
  void change(Call call) noexcept {
    lock_.lock();
    std::invoke(call, state_);
    match_up();
  }
  [[nodiscard]] std::size_t available() noexcept;
  // Returns an empty token if no memory is available for the stop source.
  [[nodiscard]] std::stop_token stop_token() noexcept;
  [[nodiscard]] PoolTimings timings() noexcept;

  [[nodiscard]] const PoolOptions& options() const noexcept { return *options_; }
  [[nodiscard]] const TaskRunner& runner() const noexcept { return runner_; }
  // Returns a number that distinguishes pools with the same name.
  [[nodiscard]] unsigned number() const noexcept { return listing_.number(); }
  [[nodiscard]] PoolCore* parent() const noexcept { return parent_; }
  // Returns the outermost pool around this pool, or this pool if it has no parent. The tasks of
  // pools with the same root release their slots while they wait for one another.
  [[nodiscard]] PoolCore& root() const noexcept { return root_; }

  // A task without a weight calls lend_slot() to lend its slot to the item's task, and then waits
  // for the end of that task; see nested/lent_slot.cpp. Returns false if the item's task would not
  // be the next to start, or if a worker is available. Otherwise the caller must call
  // run_in_lent_slot().
  [[nodiscard]] bool lend_slot(detail::PoolItem& item, std::uint64_t& number) noexcept;
  void run_in_lent_slot(detail::PoolItem& item, std::uint64_t number) noexcept;
  // A task that has given its slots back calls reacquire_slots() to take them again; see
  // nested/blocking_scope.cpp. Parks.
  void reacquire_slots(std::size_t weight) noexcept;

  // --- For workers, nested/ and services/, which lock the pool themselves.
  // Functions that require the lock may release the lock and take it again. ---

  [[nodiscard]] detail::SpinLock& spin_lock() noexcept WEFT_RETURNS_LOCK(lock_) { return lock_; }
  void lock() noexcept WEFT_ACQUIRES(lock_) { lock_.lock(); }
  void unlock() noexcept WEFT_RELEASES(lock_) { lock_.unlock(); }
  // Unlocks, then performs the effects of the change.
  void unlock(Effects& effects) noexcept WEFT_RELEASES(lock_) {
    lock_.unlock();
    effects.perform();
  }
  [[nodiscard]] PoolState& state() noexcept WEFT_REQUIRES(lock_) { return state_; }
  // Returns the state, for a caller that has locked another pool with the same root; the pools
  // share one lock.
  [[nodiscard]] PoolState& shared_state() noexcept WEFT_NOT_ANALYZED { return state_; }
  // Called after a state change other than the end of a task. Gives tasks to workers, and free
  // slots to blocked submitters and to tasks that wait to reacquire slots. Performs the effects.
  void match_up(Effects& effects) noexcept WEFT_RELEASES(lock_);
  void match_up() noexcept WEFT_RELEASES(lock_) {
    Effects none;
    match_up(none);
  }
  // Accepts or refuses the item; returns std::nullopt if the pool has no room. May release and
  // retake the lock.
  [[nodiscard]] std::optional<std::error_code> accept_if_room(detail::PoolItem& item,
                                                              Effects& effects) noexcept
      WEFT_REQUIRES(lock_);
  // Grows the queue's memory to make room for `item`. Returns false if no memory is available.
  [[nodiscard]] bool grow_queue(const detail::PoolItem& item) noexcept WEFT_REQUIRES(lock_);
  // Called when a fiber on which tasks may depend could not be started. If no worker is live and
  // the pool is not paused, the caller runs all tasks: queued tasks, drain tasks, and tasks of
  // blocked submitters.
  void run_stranded_tasks() noexcept WEFT_REQUIRES(lock_);
  // Takes one step of the growth that must_grow() requires; more steps may be needed. Returns an
  // error if a fiber could not be started.
  [[nodiscard]] std::error_code grow(std::size_t items) noexcept WEFT_REQUIRES(lock_);
  // Starts a background fiber, which counts as a user of the pool.
  [[nodiscard]] std::error_code start_background(BackgroundFiber& fiber,
                                                 BackgroundFiber::Body body) noexcept
      WEFT_REQUIRES(lock_);
  [[nodiscard]] std::error_code start_reaper() noexcept WEFT_REQUIRES(lock_) {
    return start_background(state_.reaper, bodies_.reaper);
  }
  // Parks a background fiber.
  void sleep(BackgroundFiber& fiber, Deadline until) noexcept WEFT_REQUIRES(lock_);
  // Must be the last access to the pool by a fiber that `users` counts.
  void leave() noexcept {
    lock_.lock();
    unlock_and_leave();
  }
  void unlock_and_leave() noexcept WEFT_RELEASES(lock_);

  // --- The end of a task: end_task.cpp ---

  // Ends a task whose slot is still in use: completes its job, and frees the slot. If no other
  // reference to the job exists, releases the lock to destroy the job, because the destructor runs
  // user code.
  void end_task(PoolWorker& self, detail::PoolItem& item) noexcept WEFT_REQUIRES(lock_);
  // The next three functions are steps of end_task(). end_job() returns the task's weight.
  [[nodiscard]] std::size_t end_job(detail::PoolJob& job, PoolWorker& self) noexcept
      WEFT_REQUIRES(lock_);
  // Returns true if the pool keeps the job, to reuse it for a later task.
  [[nodiscard]] bool end_attributes(detail::TaskAttributes& attributes) noexcept
      WEFT_REQUIRES(lock_);
  void end_slots(const PoolWorker& self, std::size_t weight) noexcept WEFT_REQUIRES(lock_);

 private:
  // Unlocks, and wakes an idle worker if the accepted tasks need another worker.
  void announce_accepted() noexcept WEFT_RELEASES(lock_);
  // The function submit_dropping() is in submit.cpp.
  [[nodiscard]] std::error_code submit_dropping(detail::PoolItem& item, Effects& effects)
      WEFT_RELEASES(lock_);
  // Finishes the submission of a task, and returns the result.
  [[nodiscard]] std::error_code answered(std::error_code error, Effects& effects) noexcept
      WEFT_RELEASES(lock_);

  // The next three functions are in dispatch.cpp. They release and retake the lock.
  [[nodiscard]] std::error_code start_worker() noexcept WEFT_REQUIRES(lock_);
  // Starts a fiber of the pool, and counts it as a user. If the fiber cannot be started, returns an
  // error, whereas weft::go() would throw.
  [[nodiscard]] std::error_code spawn_user(BackgroundFiber::Body body) noexcept
      WEFT_REQUIRES(lock_);
  [[nodiscard]] std::error_code start_worker_for(const detail::PoolItem& item,
                                                 Effects& effects) noexcept WEFT_REQUIRES(lock_);

  // The Nesting object locks this pool, but clang's analysis cannot see this.
  void lock_with_sub_pools_closed(Close mode) noexcept WEFT_ACQUIRES(lock_) WEFT_NOT_ANALYZED {
    nesting_->lock_with_sub_pools_closed(mode);
  }

  const std::unique_ptr<const PoolOptions> options_;
  const Bodies& bodies_;
  TaskRunner runner_;
  PoolCore* const parent_;
  PoolCore& root_;
  NestingPlace nesting_;

  detail::SpinLock own_lock_;  // Used only by a pool without a parent.
  detail::SpinLock& lock_;
  PoolState state_ WEFT_GUARDED_BY(lock_);
  SpareTasks spares_ WEFT_GUARDED_BY(lock_);
  // The stop source is empty until the first request for a token, because few pools need it. It is
  // replaced when a cancelled pool is opened again.
  std::stop_source stop_source_ WEFT_GUARDED_BY(lock_){std::nostopstate};
  const Listing listing_{*this};  // The last field, so it is destroyed first.
};

inline void PoolCore::announce_accepted() noexcept {
  PoolWorker* const called = state_.should_call_worker() ? &state_.workers.call() : nullptr;
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

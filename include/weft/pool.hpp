// Runs tasks in a pool of fibers, and limits how many tasks run at once.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <ranges>
#include <stop_token>
#include <system_error>
#include <type_traits>
#include <utility>
#include <weft/accepted.hpp>
#include <weft/detail/blocking_scope.hpp>
#include <weft/detail/exceptions.hpp>
#include <weft/detail/group_pool.hpp>
#include <weft/detail/pool_entry.hpp>
#include <weft/detail/pool_job.hpp>
#include <weft/detail/stop_registration.hpp>
#include <weft/detail/wrong_pool_calls.hpp>
#include <weft/error.hpp>
#include <weft/pool_options.hpp>
#include <weft/pool_task.hpp>
#include <weft/pool_timings.hpp>
#include <weft/result.hpp>
#include <weft/submit_options.hpp>

namespace weft {

// Runs tasks in worker fibers, at most `capacity` at once.
//
// By default, workers start on demand, are reused in LIFO order, and retire when idle. Tasks start
// in the order of acceptance, unless SubmitOptions or OnFull::caller_runs change it. A task that
// waits on its own pool frees its slot (release_when_blocked), so tasks that it waits for can run.
//
// A task that accepts a std::stop_token receives one. close(Close::cancel), PoolTask::cancel(),
// SubmitOptions and run_until() request a stop through it. Without options, a nothrow-movable
// callable of up to 32 bytes (24 with a token) needs no allocation, except in async functions and
// run_until(). The pool's first stop token needs one.
// Context: fibers, tasks of this pool and plain threads. These functions park: run(), join(), the
// wait functions, the destructor, and all functions that submit tasks except the try_ functions.
// Throws: join() and the wait functions throw std::system_error if a task of the pool calls them
// (resource_deadlock_would_occur); join() also in on_tick. Submissions throw as submit() does.
// Ordering: submit() synchronizes with the start of its task. The end of the task synchronizes with
// the return of each call that waits for the task.
// Lifetime: the pool may outlive the Runtime. The Runtime's destructor waits until the pool's tasks
// have ended and, if on_tick is set, until the pool is closed.
class FiberPool : private detail::WrongPoolCalls {
 public:
  // Opens the pool.
  // Throws: std::invalid_argument (what() names the option), std::bad_alloc, std::system_error.
  explicit FiberPool(PoolOptions options = {});
  // Neither copyable nor movable. With a const parameter, g++ would reject pool({}) as ambiguous.
  FiberPool(FiberPool&) = delete;
  FiberPool& operator=(const FiberPool&) = delete;
  // Calls close(Close::drain), then join(). If tasks are still running after 5 s, lists fibers
  // (at most 200 per runtime) on stderr once.
  ~FiberPool();

  // The type of the handle that async() returns.
  template <class F>
  using TaskOf = PoolTask<detail::PoolResult<std::decay_t<F>&>>;

  // Submits a callable to be run once. SubmitOptions may be the first argument, except in calls
  // that take iterators. The _until functions take an Until before the callable. The functions:
  //   submit        acts as on_full specifies if there is no room
  //   try_submit    never parks
  //   submit_until  parks until there is room or `until` ends the wait, regardless of on_full
  //   go            works as submit(), but throws if the pool refuses the task
  //   submit_bulk   submits each callable of a range, in order
  //   async         submits, and returns a handle for the result; run() waits for the result
  //
  // For a refused task, the error is closed, full, timed_out, cancelled, too_many_waiting,
  // empty_task or too_heavy. If no worker can start or the queue cannot grow, it is no_runtime,
  // too_many_fibers or std::errc::not_enough_memory. A refused callable is unchanged, unless moving
  // it may throw. Memory is allocated for a callable of more than 32 bytes, as in weft::go(). The
  // pool reuses up to 256 objects for tasks with options; a stop token or a timeout always needs
  // memory. `until`, the task's deadline and a stop request for the task end the wait for room.
  // Throws: whatever a copy or move of the callable throws; std::bad_alloc if memory is exhausted;
  // std::invalid_argument if an option is invalid (what() names it).
  template <detail::PoolCallable F>
  Accepted submit(F&& callable) {
    return entry().hand_over(Room::as_configured, std::forward<F>(callable));
  }
  template <detail::PoolCallable F>
  Accepted submit(const SubmitOptions& options, F&& callable) {
    return entry().hand_over(options, Room::as_configured, {}, std::forward<F>(callable));
  }
  // Submits without waiting; refuses with Errc::full if there is no room, regardless of on_full.
  template <detail::PoolCallable F>
  Accepted try_submit(F&& callable) {
    return entry().hand_over(Room::now, std::forward<F>(callable));
  }
  template <detail::PoolCallable F>
  Accepted try_submit(const SubmitOptions& options, F&& callable) {
    return entry().hand_over(options, Room::now, {}, std::forward<F>(callable));
  }
  // Parks until there is room, regardless of on_full. If `until` ends the wait, refuses the task
  // with Errc::timed_out or cancelled.
  template <detail::PoolCallable F>
  Accepted submit_until(const Until& until, F&& callable) {
    return entry().hand_over(Room::awaited, std::forward<F>(callable), until);
  }
  template <detail::PoolCallable F>
  Accepted submit_until(const SubmitOptions& options, const Until& until, F&& callable) {
    return entry().hand_over(options, Room::awaited, until, std::forward<F>(callable));
  }
  // Submits a task; a refusal throws an exception.
  // Throws: whatever submit() throws and, if the pool refuses the task, std::system_error with the
  // error and the pool's name.
  template <detail::PoolCallable F>
  void go(F&& callable) {
    check(submit(std::forward<F>(callable)));
  }
  template <detail::PoolCallable F>
  void go(const SubmitOptions& options, F&& callable) {
    check(submit(options, std::forward<F>(callable)));
  }

  // Submits each callable of a range. Without options, often locks the pool only once per 16 tasks.
  // Copies callables, or moves them from an rvalue container or move iterators. Moves refused ones
  // back for multi-pass iterators. If a copy or move throws, earlier tasks may already be accepted.
  // Returns: the first refusal as `error`, and the number of tasks accepted before it as `value`.
  template <std::input_iterator Iterator, std::sentinel_for<Iterator> End>
  requires detail::PoolCallable<std::iter_value_t<Iterator>> Result<std::size_t> submit_bulk(
      Iterator first, End last) {
    return entry().hand_over_all(std::move(first), std::move(last), Room::as_configured, {});
  }
  template <detail::RangeOfTasks Range>
  Result<std::size_t> submit_bulk(Range&& callables) {
    return entry().in_bulk(std::forward<Range>(callables), Room::as_configured, {});
  }
  // Works like submit_bulk(), but parks until there is room or `until` ends the wait, regardless of
  // on_full. After an error, the result's `value` is the number of tasks accepted before the error.
  template <detail::RangeOfTasks Range>
  Result<std::size_t> submit_bulk_until(const Until& until, Range&& callables) {
    return entry().in_bulk(std::forward<Range>(callables), Room::awaited, until);
  }
  // Works like submit_bulk() above, with `options` for each task.
  template <detail::RangeOfTasks Range>
  Result<std::size_t> submit_bulk(const SubmitOptions& options, Range&& callables) {
    return entry().in_bulk(std::forward<Range>(callables), Room::as_configured, {}, options);
  }
  // Works like submit_bulk_until() above, with `options` for each task.
  template <detail::RangeOfTasks Range>
  Result<std::size_t> submit_bulk_until(const SubmitOptions& options, const Until& until,
                                        Range&& callables) {
    return entry().in_bulk(std::forward<Range>(callables), Room::awaited, until, options);
  }

  // Submits a task and returns a handle for its result. The task runs in the caller's context
  // (context.hpp), if there is one; the context may end before the task.
  // Throws: whatever submit() throws, std::bad_alloc, std::system_error if the task is refused.
  template <detail::PoolCallable F>
  [[nodiscard]] TaskOf<F> async(F&& callable) {
    return entry().started(entry().start(Room::as_configured, {}, std::forward<F>(callable)));
  }
  template <detail::PoolCallable F>
  [[nodiscard]] TaskOf<F> async(const SubmitOptions& options, F&& callable) {
    return entry().started(
        entry().start(options, Room::as_configured, {}, std::forward<F>(callable)));
  }
  // Works like async(), but waits for room as submit_until() does.
  template <detail::PoolCallable F>
  [[nodiscard]] TaskOf<F> async_until(const Until& until, F&& callable) {
    return entry().started(entry().start(Room::awaited, until, std::forward<F>(callable)));
  }
  template <detail::PoolCallable F>
  [[nodiscard]] TaskOf<F> async_until(const SubmitOptions& options, const Until& until,
                                      F&& callable) {
    return entry().started(entry().start(options, Room::awaited, until, std::forward<F>(callable)));
  }
  // Works like async(), but does not park. The handle is valid if there is no error.
  template <detail::PoolCallable F>
  Result<TaskOf<F>> try_async(F&& callable) {
    return entry().start(Room::now, {}, std::forward<F>(callable));
  }
  template <detail::PoolCallable F>
  Result<TaskOf<F>> try_async(const SubmitOptions& options, F&& callable) {
    return entry().start(options, Room::now, {}, std::forward<F>(callable));
  }

  // Runs `callable` as a task in the caller's context, parks until it ends, and returns its result.
  // The call allocates no memory for `callable`. A caller that is a task of the pool may pass its
  // slot to a new fiber for `callable`, if no task is queued and no worker is free.
  // Throws: what `callable` or async() throws; what PoolTask::get() throws if the task is dropped.
  template <detail::PoolCallable F>
  auto run(F&& callable) -> detail::PoolResult<F&> {
    return entry().run(callable);
  }
  // Works like run() without options, but allocates memory.
  template <detail::PoolCallable F>
  auto run(const SubmitOptions& options, F&& callable) -> detail::PoolResult<F&> {
    if (detail::is_empty_callable<std::decay_t<F>>(callable)) check(Errc::empty_task);
    return async(options, std::ref(callable)).get();
  }
  // Works like run(), but `until` may end the wait for the result, and any wait for room that
  // on_full specifies. The call then returns an empty optional, or false if the task has no result.
  // A task that has not begun by then never runs. A running task receives a stop request and
  // continues without the caller. It may outlive the caller, so it owns its callable.
  template <detail::PoolCallable F>
  [[nodiscard]] auto run_until(const Until& until, F&& callable) {
    return entry().in_time(until,
                           entry().start(Room::as_configured, until, std::forward<F>(callable)));
  }
  template <detail::PoolCallable F>
  [[nodiscard]] auto run_until(const SubmitOptions& options, const Until& until, F&& callable) {
    return entry().in_time(
        until, entry().start(options, Room::as_configured, until, std::forward<F>(callable)));
  }

  // These overloads exist only for their error messages.
  using WrongPoolCalls::async, WrongPoolCalls::async_until, WrongPoolCalls::try_async;
  using WrongPoolCalls::go, WrongPoolCalls::run, WrongPoolCalls::run_until;
  using WrongPoolCalls::submit, WrongPoolCalls::submit_until, WrongPoolCalls::try_submit;

  // Parks until no task is queued or running. Callers may submit tasks meanwhile and afterwards.
  void wait_idle() { (void)wait_idle_until({}); }
  // Waits as wait_idle() does; returns false if `until` ended the wait.
  [[nodiscard]] bool wait_idle_until(const Until& until);

  // Parks until `count` tasks have returned or thrown since the construction of the pool; dropped
  // tasks do not count. To wait for 100 more tasks, a sole submitter reads stats() first, and
  // passes completed + failed + 100. Returns false if `until` ended the wait, or if the pool was
  // closed and became empty first.
  [[nodiscard]] bool wait_for_completed(std::uint64_t count, const Until& until = {});

  // After pause() has returned, no task starts. Running tasks continue, and the pool accepts tasks
  // while there is room. During the pause, OnFull::caller_runs acts as OnFull::block does. A task
  // that has freed its slot for a wait may have to wait for resume(), too. resume() and close() end
  // the pause; pause() has no effect on a closed pool.
  void pause() noexcept;
  // Lets tasks start again, in the order of acceptance, unless a PauseScope pauses the pool.
  void resume() noexcept;
  // Returns whether the pool is paused; may be stale.
  [[nodiscard]] bool is_paused_hint() const noexcept;
  // Parks until no task is running, and returns true. Returns false at once if the pool is not
  // paused, and later if the pause ends. A task that waits for an unstarted task counts as running.
  bool wait_paused() { return wait_paused_until({}); }
  // Waits as wait_paused() does; also returns false if `until` ended the wait.
  [[nodiscard]] bool wait_paused_until(const Until& until);

  // Changes the capacity for tasks that start later; it may be below min_workers. Surplus idle
  // workers retire now, and surplus busy workers retire after their task. A retired worker counts
  // as alive until the FiberLocals of its tasks are destroyed. Accepted tasks remain accepted.
  // Throws: std::invalid_argument for 0, and for kUnlimited if the pool grows eagerly.
  void resize(std::size_t capacity);
  // Returns the last capacity set by resize() or the constructor.
  [[nodiscard]] std::size_t capacity() const noexcept;
  // Returns how many slots the accepted tasks leave free in the pool and each parent; may be stale.
  [[nodiscard]] std::size_t available_hint() const noexcept;

  // Stops accepting tasks, also in sub-pools; callers parked in submit get Errc::closed. After
  // close(discard) has returned, no task starts. A task starts when a worker takes it; stats() then
  // counts it in `busy`. The task's code may run slightly later. close() ends a pause, so a drain
  // runs the queued tasks. close() may be called again, for example to end a drain.
  void close(Close mode) noexcept;
  // Parks until the pool has been closed and its fibers no longer use the pool.
  void join() { (void)join_until({}); }
  // Waits as join() does; returns false if `until` ended the wait.
  [[nodiscard]] bool join_until(const Until& until);
  // Returns whether the pool is closed; may be stale because of reopen().
  [[nodiscard]] bool is_closed_hint() const noexcept;
  // Returns the token through which close(Close::cancel) stops tasks. A task can pass it to work
  // that it starts elsewhere. After close(Close::cancel) and reopen(), the token is new; earlier
  // tasks keep the old one. Locks the pool briefly. Returns an empty token if memory is exhausted.
  [[nodiscard]] std::stop_token stop_token() const noexcept;
  // Reopens, unless a parent is closed or `stop` was requested. Tasks that an earlier
  // close(Close::drain) left in the queue still run, and the counters keep their values.
  // Throws: with prestart, prealloc or on_tick, std::system_error; the pool is open even then.
  void reopen();

  // Returns a consistent snapshot of the counters and gauges. Takes the pool's lock briefly.
  [[nodiscard]] PoolStats stats() const noexcept;
  // Returns the measurements of PoolOptions::timings. Takes the pool's lock briefly.
  [[nodiscard]] PoolTimings timings() const noexcept;

 private:
  using Room = detail::PoolEntry::Room;
  friend class detail::BlockingScope;
  friend detail::GroupPool detail::group_pool(FiberPool& pool) noexcept;
  friend class PauseScope;

  // Returns the outermost parent of this pool, or this pool if it has no parent.
  [[nodiscard]] const pool::PoolCore& root() const noexcept;
  [[nodiscard]] detail::PoolEntry entry() const noexcept { return detail::PoolEntry(*core_); }
  void check(const Accepted& accepted) const { entry().throw_if_refused(accepted); }

  struct CloseOnStop {
    FiberPool* pool;
    void operator()() noexcept;
  };

  const std::unique_ptr<pool::PoolCore> core_;
  detail::StopRegistration<CloseOnStop> outer_stop_;
};

// Pauses a pool as FiberPool::pause() does. The pause lasts until the PauseScope is destroyed or
// the pool is closed; resume() does not end it. Several PauseScopes may pause a pool at once. A
// PauseScope cannot be copied or moved. Only its creator, a fiber or plain thread, may destroy it.
// Context: fibers and plain threads; no call parks.
// Lifetime: the pool must outlive the PauseScope.
class PauseScope {
 public:
  // Pauses the pool.
  explicit PauseScope(FiberPool& pool) noexcept;
  // Ends this pause; tasks start if no other pause exists.
  ~PauseScope();
  PauseScope(const PauseScope&) = delete;
  PauseScope& operator=(const PauseScope&) = delete;

 private:
  FiberPool& pool_;
  // The number of the pool's open period in which the pause began; 0 if the pool was closed.
  const std::uint64_t number_;
};

// Returns the process-wide pool, for code that must limit concurrency but needs no separate pool.
// The first call creates the pool, with a slot for each processor, no queue, and OnFull::block. Its
// workers belong to the runtime that is current when they start. Idle workers retire within 20 ms,
// so they do not delay the end of a Runtime; a later Runtime may use the same pool. Without a
// Runtime, the pool refuses tasks with Errc::no_runtime.
// Context: fibers and plain threads; does not park.
// Throws: whatever the constructor of FiberPool throws, if the call creates the pool.
// Ordering: the first call synchronizes with the later calls.
[[nodiscard]] FiberPool& default_pool();

}  // namespace weft

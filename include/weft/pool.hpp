// A pool of fibers with a hard limit.
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

// Worker fibers that run tasks, at most `capacity` at once.
//
// Workers start on demand, are reused LIFO, and retire when idle. Tasks start in the order of
// acceptance, unless SubmitOptions change it. A task that waits on its own pool, in submit(), run()
// or a PoolTask, frees its slot meanwhile. So nested waits never run out of slots.
//
// A task that can be called with a std::stop_token receives one. close(Close::cancel) requests its
// stop, and so does PoolTask::cancel() of async(). Only async() and the first token allocate.
// Context: fibers, tasks of this pool and plain threads. submit(), its forms without try_, run(),
// waits, join() and the destructor park.
// Throws: waits and join() throw std::system_error (std::errc::resource_deadlock_would_occur) in a
// task of the pool, as they would wait for it. Submits throw the exceptions listed at submit().
// Ordering: a submit synchronizes with the start of its task, and its end with the return of each
// wait for it.
// Lifetime: it may outlive the Runtime, which waits for its tasks and, with on_tick, for its close.
class FiberPool : private detail::WrongPoolCalls {
 public:
  // Opens the pool.
  // Throws: std::invalid_argument that names the option; without memory or fibers as weft::go().
  explicit FiberPool(PoolOptions options = {});
  // Not copied or moved. The parameter is no const reference, which g++ would bind to the braces in
  // pool({}).
  FiberPool(FiberPool&) = delete;
  FiberPool& operator=(const FiberPool&) = delete;
  // Calls close(Close::drain), then join(). If tasks last longer than 5 s, it lists all fibers on
  // stderr, once.
  ~FiberPool();

  // The handle of a task.
  template <class F>
  using TaskOf = PoolTask<detail::PoolResult<std::decay_t<F>&>>;

  // Submits a callable to be run once. Each form may take SubmitOptions before the callable, and a
  // form that waits an Until before them:
  //   submit        does what on_full specifies if there is no room
  //   try_submit    never parks
  //   submit_until  parks for room until the limit at most, regardless of on_full
  //   go            submit(), where a refusal is an exception
  //   submit_bulk   submit() for each of a range, in order
  //   async         submit(), with a handle for the result; run() also waits for it
  //
  // A refusal is: closed, full, timed_out, cancelled, too_many_waiting, empty_task, too_heavy, or
  // the reason why no worker started (no_runtime, too_many_fibers, std::errc::not_enough_memory).
  // The callable is then unchanged, unless moving it may throw. A callable of more than 32 bytes is
  // stored as go() stores it. Tasks with options reuse up to 256 records of the pool; a stop token
  // or a timeout allocates. The limit of the call, the task's own deadline or its stop request ends
  // the wait for room, whichever is first.
  // Throws: what building the task throws, and std::bad_alloc for a callable of more than 32 bytes
  // and for the pool's first stop token. With options also std::invalid_argument that names the
  // field.
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
  // Parks for room until the limit, regardless of on_full; refuses with Errc::timed_out or
  // cancelled.
  template <detail::PoolCallable F>
  Accepted submit_until(const Until& until, F&& callable) {
    return entry().hand_over(Room::awaited, std::forward<F>(callable), until);
  }
  template <detail::PoolCallable F>
  Accepted submit_until(const SubmitOptions& options, const Until& until, F&& callable) {
    return entry().hand_over(options, Room::awaited, until, std::forward<F>(callable));
  }
  // Submits a task whose refusal would be a mistake.
  // Throws: as submit(), and std::system_error with the code of a refusal and the pool's name.
  template <detail::PoolCallable F>
  void go(F&& callable) {
    check(submit(std::forward<F>(callable)));
  }
  template <detail::PoolCallable F>
  void go(const SubmitOptions& options, F&& callable) {
    check(submit(options, std::forward<F>(callable)));
  }

  // Submits a range, without options up to 16 tasks under one hold of the lock. Callables are
  // copied. From a moved container, or from move iterators, they are moved; from the first refused
  // callable on, they are given back. If making a task throws, some tasks before it may have been
  // accepted.
  // Returns: the number of accepted tasks, in order, as `value`; the first refusal, as `error`.
  template <std::input_iterator Iterator, std::sentinel_for<Iterator> End>
  requires detail::PoolCallable<std::iter_value_t<Iterator>> Result<std::size_t> submit_bulk(
      Iterator first, End last) {
    return entry().hand_over_all(std::move(first), std::move(last), Room::as_configured, {});
  }
  template <detail::RangeOfTasks Range>
  Result<std::size_t> submit_bulk(Range&& callables) {
    return entry().in_bulk(std::forward<Range>(callables), Room::as_configured, {});
  }
  // Does the same, but parks for room until the limit, regardless of on_full. After an error the
  // first `value` tasks have been accepted.
  template <detail::RangeOfTasks Range>
  Result<std::size_t> submit_bulk_until(const Until& until, Range&& callables) {
    return entry().in_bulk(std::forward<Range>(callables), Room::awaited, until);
  }
  // Does the same, with these options for each task.
  template <detail::RangeOfTasks Range>
  Result<std::size_t> submit_bulk(const SubmitOptions& options, Range&& callables) {
    return entry().in_bulk(std::forward<Range>(callables), Room::as_configured, {}, options);
  }
  // Does the same, with these options for each task.
  template <detail::RangeOfTasks Range>
  Result<std::size_t> submit_bulk_until(const SubmitOptions& options, const Until& until,
                                        Range&& callables) {
    return entry().in_bulk(std::forward<Range>(callables), Room::awaited, until, options);
  }

  // Submits a task and returns a handle for its result. The task has the caller's context
  // (context.hpp), if there is one; it may end before the task.
  // Throws: as submit(), std::system_error with the code of a refusal, std::bad_alloc.
  template <detail::PoolCallable F>
  [[nodiscard]] TaskOf<F> async(F&& callable) {
    return entry().started(entry().start(Room::as_configured, {}, std::forward<F>(callable)));
  }
  template <detail::PoolCallable F>
  [[nodiscard]] TaskOf<F> async(const SubmitOptions& options, F&& callable) {
    return entry().started(
        entry().start(options, Room::as_configured, {}, std::forward<F>(callable)));
  }
  // Does the same as submit_until() for async(): the limit bounds the wait for room.
  template <detail::PoolCallable F>
  [[nodiscard]] TaskOf<F> async_until(const Until& until, F&& callable) {
    return entry().started(entry().start(Room::awaited, until, std::forward<F>(callable)));
  }
  template <detail::PoolCallable F>
  [[nodiscard]] TaskOf<F> async_until(const SubmitOptions& options, const Until& until,
                                      F&& callable) {
    return entry().started(entry().start(options, Room::awaited, until, std::forward<F>(callable)));
  }
  // Does the same as try_submit() for async(): the handle is valid if there is no error.
  template <detail::PoolCallable F>
  Result<TaskOf<F>> try_async(F&& callable) {
    return entry().start(Room::now, {}, std::forward<F>(callable));
  }
  template <detail::PoolCallable F>
  Result<TaskOf<F>> try_async(const SubmitOptions& options, F&& callable) {
    return entry().start(options, Room::now, {}, std::forward<F>(callable));
  }

  // Runs `callable` on a worker, in the caller's context, parks for its result and returns it. The
  // call does not allocate. A calling task of the pool lends its slot to a new fiber for `callable`
  // if nothing is queued and no worker is free.
  // Throws: the exception of `callable`, as async(), and after a close(Close::discard) as
  // PoolTask::get().
  template <detail::PoolCallable F>
  auto run(F&& callable) -> detail::PoolResult<F&> {
    return entry().run(callable);
  }
  // Does the same with options, which take an allocation.
  template <detail::PoolCallable F>
  auto run(const SubmitOptions& options, F&& callable) -> detail::PoolResult<F&> {
    if (detail::is_empty_callable<std::decay_t<F>>(callable)) check(Errc::empty_task);
    return async(options, std::ref(callable)).get();
  }
  // Does the same, but `until` may end the wait for room, if on_full waits, and the wait for the
  // result. It then returns no value, or false for a task without a result. A task that has not
  // begun then never runs; otherwise it receives a stop request and continues without the caller.
  // The task therefore owns its callable, in an allocation.
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

  // Overloads for wrong callables: the compiler's error states which arguments a callable takes.
  using WrongPoolCalls::async, WrongPoolCalls::async_until, WrongPoolCalls::try_async;
  using WrongPoolCalls::go, WrongPoolCalls::run, WrongPoolCalls::run_until;
  using WrongPoolCalls::submit, WrongPoolCalls::submit_until, WrongPoolCalls::try_submit;

  // Parks until no task is queued or running. Tasks may be submitted meanwhile and afterwards.
  void wait_idle() { (void)wait_idle_until({}); }
  // Waits as wait_idle() does; returns false if `until` ended the wait.
  [[nodiscard]] bool wait_idle_until(const Until& until);

  // Parks until `count` tasks have returned or thrown since the construction of the pool; dropped
  // tasks do not count. A sole caller that has submitted 100 tasks waits for 100 plus the earlier
  // completed + failed of stats(). Returns false if `until` ended the wait, or once the pool is
  // closed and empty, so that the number cannot be reached.
  [[nodiscard]] bool wait_for_completed(std::uint64_t count, const Until& until = {});

  // Once pause() has returned, no task starts. Running tasks continue, and tasks are accepted while
  // there is room. OnFull::caller_runs then parks as block does. A task that has freed its slot may
  // have to wait for resume(). resume() and close() end the pause; pause() has no effect on a
  // closed pool.
  void pause() noexcept;
  // Starts tasks again, in the order of acceptance.
  void resume() noexcept;
  // Returns whether it is paused; may be stale.
  [[nodiscard]] bool is_paused_hint() const noexcept;
  // Parks until no task runs, and returns true. Returns false at once if the pool is not paused, or
  // as soon as the pause ends. A task that waits for an unstarted task counts as running.
  bool wait_paused() { return wait_paused_until({}); }
  // Waits as wait_paused() does; also returns false if `until` ended the wait.
  [[nodiscard]] bool wait_paused_until(const Until& until);

  // Changes the capacity for later starts of tasks. Surplus idle workers retire now, surplus busy
  // workers after their task. A retired worker counts as living until the FiberLocals of its tasks
  // are destroyed. Accepted tasks stay accepted. At least min_workers workers are kept.
  // Throws: std::invalid_argument for 0, and for kUnlimited if the pool grows eagerly.
  void resize(std::size_t capacity);
  // Returns the last capacity set by resize(), the constructor or an autoscaler.
  [[nodiscard]] std::size_t capacity() const noexcept;
  // Returns the number of slots that no running or accepted task needs, which may be stale.
  [[nodiscard]] std::size_t available_hint() const noexcept;

  // Ends acceptance; callers parked in submit get Errc::closed. After close(discard) has returned,
  // no task starts. A task starts when a worker takes it; from then on stats() counts it as busy.
  // Its first instruction follows a moment later. A pause ends, so a drain runs the queued tasks.
  // It may be called again, for example to discard after a drain.
  void close(Close mode) noexcept;
  // Parks until the pool has been closed and its fibers no longer use it.
  void join() { (void)join_until({}); }
  // Waits as join() does; returns false if `until` ended the wait.
  [[nodiscard]] bool join_until(const Until& until);
  // Returns whether it is closed; reopen() may change that at once.
  [[nodiscard]] bool is_closed_hint() const noexcept;
  // Returns the token that tasks receive, for work that they start elsewhere. After a
  // close(Close::cancel) and reopen() it is a new token; tasks keep the token of their submit.
  // Takes the pool's lock briefly. Without memory for the first token, the result is empty.
  [[nodiscard]] std::stop_token stop_token() const noexcept;
  // Accepts tasks again; draining workers continue with the new tasks, and counters continue.
  // Throws: with prestart, prealloc or on_tick as weft::go(); the pool is then open nevertheless.
  void reopen();

  // Returns counters and gauges of one moment. Takes the pool's lock briefly.
  [[nodiscard]] PoolStats stats() const noexcept;
  // Returns the measurements of PoolOptions::timings. Takes the pool's lock briefly.
  [[nodiscard]] PoolTimings timings() const noexcept;

 private:
  using Room = detail::PoolEntry::Room;
  friend class detail::BlockingScope;
  friend detail::GroupPool detail::group_pool(FiberPool& pool) noexcept;
  friend class PauseScope;

  // Returns the outermost of the pools around this one, or this pool.
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

// A pause that only the destructor or a close() ends, not a resume(). Several callers may pause the
// same pool, each for its own time. Otherwise it has the effect of FiberPool::pause(). It is
// neither copied nor moved.
// Context: fibers and plain threads; no call parks.
// Lifetime: the pool must outlive it.
class PauseScope {
 public:
  // Pauses the pool.
  explicit PauseScope(FiberPool& pool) noexcept;
  // Ends this pause; tasks start if there is no other pause. Only its maker may destroy it.
  ~PauseScope();
  PauseScope(const PauseScope&) = delete;
  PauseScope& operator=(const PauseScope&) = delete;

 private:
  FiberPool& pool_;
  // The number of the pool's open period; 0: it was closed.
  const std::uint64_t number_;
};

// Returns the pool of the process, made at its first use, for code that needs a cap on concurrency
// but no pool of its own. It has capacity for each processor, no queue, and OnFull::block. Its
// workers belong to the runtime that is current at their start. They retire after 20 ms at most,
// and so do not delay the end of a Runtime; a later Runtime may use the same pool. Without a
// Runtime, tasks are refused with Errc::no_runtime.
// Context: fibers and plain threads; does not park.
// Throws: as the constructor of a pool, from the first call.
// Ordering: the first call synchronizes with the later calls.
[[nodiscard]] FiberPool& default_pool();

}  // namespace weft

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
#include <weft/error.hpp>
#include <weft/pool_options.hpp>
#include <weft/pool_task.hpp>
#include <weft/pool_timings.hpp>
#include <weft/result.hpp>
#include <weft/submit_options.hpp>

namespace weft {

// Worker fibers that run tasks, never more than `capacity` at once.
//
// Workers are started on demand, reused last in first out, and retired when idle. Tasks start in
// the order in which they were accepted, unless SubmitOptions change it. Every call may be made
// from fibers, from tasks of this pool and from plain threads; but wait_idle, wait_paused,
// wait_for_completed and join throw std::system_error (std::errc::resource_deadlock_would_occur)
// inside a task, which they would wait for. A task that waits on its own pool, in submit(), run()
// or a PoolTask, gives its slot back meanwhile, so that nested waits never run out of slots.
//
// A task that can be called with a std::stop_token gets one, in every form of submission; stop is
// requested of it by close(Close::cancel), and of a task of async() also by PoolTask::cancel().
// It costs nothing where it is not used, and allocates only in async().
// Synchronizes: a submit with the start of its task; the end of a task with the return of
// whatever waited for it. The pool must be joined or destroyed before the Runtime ends. Calls park
// and throw where they say so; calls that hand tasks over park and throw as submit() does.
class FiberPool {
 public:
  // Throws std::invalid_argument naming the option; with prestart or on_tick also what weft::go()
  // throws.
  explicit FiberPool(PoolOptions options = {});
  // Neither copied nor moved. Not of a const one, which g++ would make of the braces in pool({}).
  FiberPool(FiberPool&) = delete;
  FiberPool& operator=(const FiberPool&) = delete;
  // close(Close::drain), then join(), which parks. After 5 s it lists all fibers on stderr, once.
  ~FiberPool();

  // The handle of a task.
  template <class F>
  using TaskOf = PoolTask<detail::PoolResult<std::decay_t<F>&>>;

  // Ways in. Each hands one callable over, or a range of them, to be run once; each may take
  // SubmitOptions first; calls that wait take an Until before them:
  //   submit        does what on_full says when there is no room
  //   try_submit    never parks
  //   submit_until  parks for room until the limit at most, whatever on_full says
  //   go            submit(), where a refusal is an exception
  //   submit_bulk   submit() for each of a range, in order
  //   async         submit(), with a handle for the result; run: and waits for it
  //
  // A refusal is: closed, full, timed_out, cancelled, too_many_waiting, empty_task, too_heavy, or
  // what kept a worker from being started (no_runtime, too_many_fibers,
  // std::errc::not_enough_memory). The callable is then where it was before, as it was, unless
  // moving it may throw. They throw only what building the task from it throws, std::bad_alloc for
  // one of more than 32 bytes, which is kept as by go(); and with options std::invalid_argument
  // that names the field. Tasks with options reuse up to 256 records that the pool keeps;
  // a stop token or a timeout always allocates. The wait for room ends with the limit of the call,
  // or with the task's own deadline or stop request, whichever comes first.
  template <detail::PoolCallable F>
  Accepted submit(F&& callable) {
    return entry().hand_over(Room::as_configured, std::forward<F>(callable));
  }
  template <detail::PoolCallable F>
  Accepted submit(const SubmitOptions& options, F&& callable) {
    return entry().hand_over(options, Room::as_configured, {}, std::forward<F>(callable));
  }
  // Never parks: Errc::full if there is no room now, whatever on_full says.
  template <detail::PoolCallable F>
  Accepted try_submit(F&& callable) {
    return entry().hand_over(Room::now, std::forward<F>(callable));
  }
  template <detail::PoolCallable F>
  Accepted try_submit(const SubmitOptions& options, F&& callable) {
    return entry().hand_over(options, Room::now, {}, std::forward<F>(callable));
  }
  // Parks for room until the limit at most, whatever on_full says: Errc::timed_out, cancelled.
  template <detail::PoolCallable F>
  Accepted submit_until(const Until& until, F&& callable) {
    return entry().hand_over(Room::awaited, std::forward<F>(callable), until);
  }
  template <detail::PoolCallable F>
  Accepted submit_until(const Until& until, const SubmitOptions& options, F&& callable) {
    return entry().hand_over(options, Room::awaited, until, std::forward<F>(callable));
  }
  // For callers to whom a refusal would be a mistake: throws std::system_error with its code, and
  // the pool's name.
  template <detail::PoolCallable F>
  void go(F&& callable) {
    check(submit(std::forward<F>(callable)));
  }
  template <detail::PoolCallable F>
  void go(const SubmitOptions& options, F&& callable) {
    check(submit(options, std::forward<F>(callable)));
  }

  // Without options, up to 16 tasks are submitted under one hold of the pool's lock. Callables are
  // copied. Callables from a container that is moved in, or from move iterators, are moved; from
  // the first refused one on they are given back. `value` is how many were accepted, in order;
  // `error` says why it stopped. If making a task throws, some tasks before it may have been
  // accepted.
  template <std::input_iterator Iterator, std::sentinel_for<Iterator> End>
  requires detail::PoolCallable<std::iter_value_t<Iterator>> Result<std::size_t> submit_bulk(
      Iterator first, End last) {
    return entry().hand_over_all(std::move(first), std::move(last), Room::as_configured, {});
  }
  template <detail::RangeOfTasks Range>
  Result<std::size_t> submit_bulk(Range&& callables) {
    return entry().in_bulk(std::forward<Range>(callables), Room::as_configured, {});
  }
  // Does the same as submit_bulk(), but parks for room until the limit at most, whatever on_full
  // says. After an error the first `value` tasks have been accepted.
  template <detail::RangeOfTasks Range>
  Result<std::size_t> submit_bulk_until(const Until& until, Range&& callables) {
    return entry().in_bulk(std::forward<Range>(callables), Room::awaited, until);
  }
  // Each of them has these options.
  template <detail::RangeOfTasks Range>
  Result<std::size_t> submit_bulk(const SubmitOptions& options, Range&& callables) {
    return entry().in_bulk(std::forward<Range>(callables), Room::as_configured, {}, options);
  }
  // The same, with these options for each of them.
  template <detail::RangeOfTasks Range>
  Result<std::size_t> submit_bulk_until(const Until& until, const SubmitOptions& options,
                                        Range&& callables) {
    return entry().in_bulk(std::forward<Range>(callables), Room::awaited, until, options);
  }

  // Throws std::system_error with the code of a refusal, and std::bad_alloc.
  template <detail::PoolCallable F>
  [[nodiscard]] TaskOf<F> async(F&& callable) {
    return entry().started(entry().start(Room::as_configured, {}, std::forward<F>(callable)));
  }
  template <detail::PoolCallable F>
  [[nodiscard]] TaskOf<F> async(const SubmitOptions& options, F&& callable) {
    return entry().started(
        entry().start(options, Room::as_configured, {}, std::forward<F>(callable)));
  }
  // Does the same as submit_until(): the limit is that of the wait for room.
  template <detail::PoolCallable F>
  [[nodiscard]] TaskOf<F> async_until(const Until& until, F&& callable) {
    return entry().started(entry().start(Room::awaited, until, std::forward<F>(callable)));
  }
  template <detail::PoolCallable F>
  [[nodiscard]] TaskOf<F> async_until(const Until& until, const SubmitOptions& options,
                                      F&& callable) {
    return entry().started(entry().start(options, Room::awaited, until, std::forward<F>(callable)));
  }
  // Does the same as try_submit(): the handle is valid if there is no error.
  template <detail::PoolCallable F>
  Result<TaskOf<F>> try_async(F&& callable) {
    return entry().start(Room::now, {}, std::forward<F>(callable));
  }
  template <detail::PoolCallable F>
  Result<TaskOf<F>> try_async(const SubmitOptions& options, F&& callable) {
    return entry().start(options, Room::now, {}, std::forward<F>(callable));
  }

  // Runs `callable` on a worker, parks for its result and returns it, or throws its exception.
  // Refusals are thrown as by async(); a close(Close::discard) as by PoolTask::get(). The call has
  // no allocation of its own. A task of the pool that calls it lends its slot if nothing is queued
  // and no worker is at hand: the callable runs on a fiber of its own then, which the call spawns.
  template <detail::PoolCallable F>
  auto run(F&& callable) -> detail::PoolResult<F&> {
    return entry().run(callable);
  }
  // Takes an allocation.
  template <detail::PoolCallable F>
  auto run(const SubmitOptions& options, F&& callable) -> detail::PoolResult<F&> {
    if (detail::is_empty_callable<std::decay_t<F>>(callable)) check(Errc::empty_task);
    return async(options, std::ref(callable)).get();
  }
  // The same, but `until` may end the wait for room, where on_full says that there is one, and that
  // for the result. Then nothing is returned, or false for a task without a result: the task never
  // runs if it has not begun, and else is asked to stop and runs on alone. So it has a callable of
  // its own, in an allocation.
  template <detail::PoolCallable F>
  [[nodiscard]] auto run_until(const Until& until, F&& callable) {
    return entry().in_time(until,
                           entry().start(Room::as_configured, until, std::forward<F>(callable)));
  }
  template <detail::PoolCallable F>
  [[nodiscard]] auto run_until(const Until& until, const SubmitOptions& options, F&& callable) {
    return entry().in_time(
        until, entry().start(options, Room::as_configured, until, std::forward<F>(callable)));
  }

  // Parks until no task is queued or running. Tasks may be submitted meanwhile and afterwards.
  void wait_idle() { (void)wait_idle_until({}); }
  // Does the same as wait_idle(), but false when the time was up first.
  [[nodiscard]] bool wait_idle_until(const Until& until);

  // Parks until `count` tasks have returned or thrown since the pool was made; dropped tasks do not
  // count. So a caller that has had 100 tasks accepted, and is the only one, waits for completed +
  // failed + 100 of a reading of stats() from before, or for any number less. Returns false when
  // `until` ended the wait, and as soon as the pool is closed and nothing of it is left, because
  // the number is not reached then.
  [[nodiscard]] bool wait_for_completed(std::uint64_t count, const Until& until = {});

  // From the return of this call on no task starts. Running tasks go on, and tasks are accepted as
  // long as there is room. OnFull::caller_runs parks as block does meanwhile. A task that has given
  // its slot back may have to wait for resume() to go on. Ended by resume() and close(); of no
  // effect on a closed pool. Legal inside a task. Never parks.
  void pause() noexcept;
  // Tasks start again, in the order in which they were accepted. Never parks.
  void resume() noexcept;
  // Returns whether a pause lasts; may be stale when it returns. Never parks.
  [[nodiscard]] bool is_paused() const noexcept;
  // Parks until no task runs: true then. False at once if the pool is not paused, and as soon as
  // the pause is ended. A task that waits for one that has not started runs, too.
  bool wait_paused() { return wait_paused_until({}); }
  // Does the same as wait_paused(); false also when the time was up first.
  [[nodiscard]] bool wait_paused_until(const Until& until);

  // From the next start of a task on, the new capacity holds: surplus idle workers are retired
  // now, surplus busy ones after their task. A retired worker counts as living until it has
  // destroyed the values of FiberLocals that its tasks made. Tasks accepted before stay accepted.
  // With a capacity below min_workers, as many workers are kept. Throws std::invalid_argument for
  // 0, and for kUnlimited if the pool grows eagerly. Never parks.
  void resize(std::size_t capacity);
  // The number that resize(), the constructor or an autoscaler said last. Never parks.
  [[nodiscard]] std::size_t capacity() const noexcept;
  // Slots that neither a running nor an accepted task needs; may be stale when it returns. Never
  // parks.
  [[nodiscard]] std::size_t available() const noexcept;

  // Accepts no more tasks; callers parked in submit get Errc::closed. After close(discard) has
  // returned no task starts; one starts when a worker takes it, from when on stats() counts it as
  // busy, a moment before its first instruction. A pause ends: so a drain of a paused pool runs
  // what is queued. Never parks. May be called again, also to discard after a drain.
  void close(Close mode) noexcept;
  // Parks until the pool has been closed and all its fibers have let go of it.
  void join() { (void)join_until({}); }
  // Does the same as join(), but false when the time was up first.
  [[nodiscard]] bool join_until(const Until& until);
  // Returns whether it accepts nothing more; reopen() may change that at once. Never parks.
  [[nodiscard]] bool is_closed() const noexcept;
  // The token that is given to tasks which take one: for what they start elsewhere. A new one after
  // a close(Close::cancel) and reopen(); tasks keep the one of the time when they were submitted.
  // From anywhere; takes the pool's lock for short, never parks.
  [[nodiscard]] std::stop_token stop_token() const noexcept;
  // Accepts tasks again; workers that still drain go on with the new ones. The counters run on.
  // With prestart or on_tick it throws what weft::go() throws, and is open nevertheless. Never
  // parks.
  void reopen();

  // Counters and gauges of one moment. From anywhere; takes the pool's lock for short, never parks.
  [[nodiscard]] PoolStats stats() const noexcept;
  // The measurements of PoolOptions::timings. Calls as for stats().
  [[nodiscard]] PoolTimings timings() const noexcept;

 private:
  using Room = detail::PoolEntry::Room;
  friend class detail::BlockingScope;
  friend detail::GroupPool detail::group_pool(FiberPool& pool) noexcept;
  friend class PauseScope;

  // The outermost of the pools around this one, or itself.
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

// A pause that ends with this object, and by no other's resume(): for several who pause the same
// pool, each for as long as it needs. A close ends it, too. As FiberPool::pause() else; the pool
// must outlive it. Neither copied nor moved. From where the pool may be called; it throws nothing
// and synchronizes with nothing.
class PauseScope {
 public:
  // Pauses the pool. Never parks. Call it from fibers and plain threads.
  explicit PauseScope(FiberPool& pool) noexcept;
  // Ends this pause; tasks start again if there is no other. The caller that made it destroys it,
  // from fibers and plain threads; never parks.
  ~PauseScope();
  PauseScope(const PauseScope&) = delete;
  PauseScope& operator=(const PauseScope&) = delete;

 private:
  FiberPool& pool_;
  const std::uint64_t number_;  // Of the time in which the pool is open; 0: it was closed.
};

// One pool for the whole process, made at first use, for code that needs a bound and no pool of its
// own: capacity for each processor, no queue, OnFull::block. Its workers belong to the runtime that
// is current when they are started and retire after 20 ms of idleness, so that the end of a Runtime
// is not held up; a later Runtime may go on with the same pool. Without a Runtime, tasks are
// refused with Errc::no_runtime. Call it from fibers and plain threads. Never parks; the first call
// throws what making a pool throws, and synchronizes with the others.
[[nodiscard]] FiberPool& default_pool();

}  // namespace weft

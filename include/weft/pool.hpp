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
#include <weft/detail/attributed_job.hpp>
#include <weft/detail/blocking_scope.hpp>
#include <weft/detail/exceptions.hpp>
#include <weft/detail/group_pool.hpp>
#include <weft/detail/pool_batch.hpp>
#include <weft/detail/pool_job.hpp>
#include <weft/detail/stop_registration.hpp>
#include <weft/error.hpp>
#include <weft/pool_options.hpp>
#include <weft/pool_task.hpp>
#include <weft/pool_timings.hpp>
#include <weft/submit_options.hpp>

namespace weft {

// Worker fibers that run tasks, never more than `capacity` at once.
//
// Workers are started on demand, reused last in first out, and retired when idle. Tasks start in
// the order in which they were accepted, but for what SubmitOptions say. Every call may be made
// from fibers, from tasks of this pool and from plain threads; but wait_idle, wait_paused,
// wait_for_completed and join throw std::system_error (std::errc::resource_deadlock_would_occur)
// inside a task, which they would wait for. A task that waits on its own pool, in submit(), run()
// or a PoolTask, gives its slot back meanwhile, so that nested waits never run out of slots. A
// callable is moved from even if it is refused.
//
// A task that can be called with a std::stop_token gets one, in every form of submission; stop is
// requested of it by close(Close::cancel), and of a task of async() also by PoolTask::cancel().
// It costs nothing where it is not used, and no allocation but in async().
// Synchronizes: a submit with the start of its task; the end of a task with the return of
// whatever waited for it. The pool must be joined or destroyed before the Runtime ends.
class FiberPool {
 public:
  // Throws std::invalid_argument naming the option; with prestart or on_tick also what weft::go()
  // throws.
  explicit FiberPool(PoolOptions options = {});  // Neither copied nor moved.
  // close(Close::drain), then join().
  ~FiberPool();

  // The submit functions return an empty code when the task was accepted, else: closed, full,
  // timed_out, too_many_waiting, empty_task, or what kept a worker from being started
  // (no_runtime, too_many_fibers, std::errc::not_enough_memory). They throw only what building
  // the task from `callable` throws, and std::bad_alloc for one of more than 32 bytes, which is
  // kept as by go(). This one does what on_full says when there is no room.
  template <detail::PoolCallable F>
  [[nodiscard]] std::error_code submit(F&& callable) {
    return enqueue(item_of(std::forward<F>(callable)));
  }
  // Never parks.
  template <detail::PoolCallable F>
  [[nodiscard]] std::error_code try_submit(F&& callable) {
    return try_enqueue(item_of(std::forward<F>(callable)));
  }
  // Parks for room until the deadline at most, whatever on_full says.
  template <detail::PoolCallable F>
  [[nodiscard]] std::error_code submit_until(const Until& until, F&& callable) {
    return enqueue_until(item_of(std::forward<F>(callable)), until);
  }
  template <class Rep, class Period, detail::PoolCallable F>
  [[nodiscard]] std::error_code submit_for(std::chrono::duration<Rep, Period> duration,
                                           F&& callable) {
    return submit_until(Deadline::after(duration), std::forward<F>(callable));
  }

  // Submits callables one after the other, as submit() does, but up to 16 under one hold of the
  // pool's lock; copies them, and moves those of a container that is moved in,
  // or that come from move iterators. Returns how many were accepted: it stops at the first that
  // was refused, and up to 15 behind it may have been moved from. If making a task throws, some of
  // those before it may have been accepted.
  template <std::input_iterator Iterator, std::sentinel_for<Iterator> End>
  requires detail::PoolCallable<std::iter_value_t<Iterator>>
  [[nodiscard]] std::size_t submit_bulk(Iterator first, End last) {
    std::size_t accepted = 0;
    while (first != last) {
      detail::PoolBatch batch;
      for (; first != last && !batch.full(); ++first) {
        batch.add([&] { return item_of(*first); });
      }
      const std::size_t size = batch.items().size();
      const std::size_t of_batch = enqueue_bulk(batch);
      accepted += of_batch;
      if (of_batch < size) break;
    }
    return accepted;
  }
  template <std::ranges::input_range Range>
  requires detail::PoolCallable<std::ranges::range_value_t<Range>>
  [[nodiscard]] std::size_t submit_bulk(Range&& callables) {
    auto first = std::ranges::begin(callables);
    auto last = std::ranges::end(callables);
    if constexpr (std::is_lvalue_reference_v<Range> || std::ranges::view<std::decay_t<Range>>) {
      return submit_bulk(std::move(first), std::move(last));
    } else {
      return submit_bulk(std::move_iterator(std::move(first)), std::move_sentinel(std::move(last)));
    }
  }

  // The same with what the task asks for. They throw std::invalid_argument that names the field,
  // too, and take an allocation only for the first tasks, and for a stop token or a timeout. Errc:
  // too_heavy; cancelled and timed_out if the task is over before it could begin.
  template <detail::PoolCallable F>
  [[nodiscard]] std::error_code submit(const SubmitOptions& options, F&& callable) {
    return enqueue(item_of(options, std::forward<F>(callable)), options.stop);
  }
  template <detail::PoolCallable F>
  [[nodiscard]] std::error_code try_submit(const SubmitOptions& options, F&& callable) {
    return try_enqueue(item_of(options, std::forward<F>(callable)));
  }
  template <detail::PoolCallable F>
  [[nodiscard]] std::error_code submit_until(const Until& until, const SubmitOptions& options,
                                             F&& callable) {
    const Until limit = until.token() != nullptr ? until : Until(until.deadline(), options.stop);
    return enqueue_until(item_of(options, std::forward<F>(callable)), limit);
  }

  // As submit(), with a handle for the result. Throws std::system_error with the code that
  // submit() would have returned, and std::bad_alloc.
  template <detail::PoolCallable F>
  [[nodiscard]] auto async(F&& callable) -> PoolTask<detail::PoolResult<std::decay_t<F>&>> {
    using Result = detail::PoolResult<std::decay_t<F>&>;
    using Call = detail::PoolCall<std::decay_t<F>, Result>;
    if (detail::is_empty_callable<std::decay_t<F>>(callable)) check(Errc::empty_task);
    auto* job = new Call(root(), detail::PoolJob::Kind::on_heap, token_for<std::decay_t<F>&>(),
                         std::forward<F>(callable));
    PoolTask<Result> task(job);
    check(enqueue(detail::PoolItem(*job)));
    return task;
  }

  template <detail::PoolCallable F>
  [[nodiscard]] auto async(const SubmitOptions& options, F&& callable)
      -> PoolTask<detail::PoolResult<std::decay_t<F>&>> {
    using Callable = std::decay_t<F>;
    using Result = detail::PoolResult<Callable&>;
    if (detail::is_empty_callable<Callable>(callable)) check(Errc::empty_task);
    auto* job = new detail::AttributedCall<Callable, Result>(
        root(), options, token_for<Callable&>(), std::forward<F>(callable));
    PoolTask<Result> task(job);
    detail::PoolItem item(*job);
    job->watch_deadline();
    check(enqueue(std::move(item), options.stop));
    return task;
  }

  // Runs `callable` on a worker and waits for its result, or throws its exception. Refusals are
  // thrown as by async(); a close(Close::discard) as by PoolTask::get(). The call has no
  // allocation of its own.
  template <detail::PoolCallable F>
  auto run(F&& callable) -> detail::PoolResult<F&> {
    if (detail::is_empty_callable<std::decay_t<F>>(callable)) check(Errc::empty_task);
    detail::PoolCall<F&, detail::PoolResult<F&>> job(root(), detail::PoolJob::Kind::on_stack,
                                                     token_for<F&>(), callable);
    check(enqueue(detail::PoolItem(job)));
    (void)job.wait_until({});
    return job.take();
  }

  // Takes an allocation.
  template <detail::PoolCallable F>
  auto run(const SubmitOptions& options, F&& callable) -> detail::PoolResult<F&> {
    if (detail::is_empty_callable<std::decay_t<F>>(callable)) check(Errc::empty_task);
    return async(options, std::ref(callable)).get();
  }

  // Parks until no task is queued or running. Tasks may be submitted meanwhile and afterwards.
  void wait_idle() { (void)wait_idle_until({}); }
  // False when the time was up first.
  [[nodiscard]] bool wait_idle_until(const Until& until);
  template <class Rep, class Period>
  [[nodiscard]] bool wait_idle_for(std::chrono::duration<Rep, Period> duration) {
    return wait_idle_until(Deadline::after(duration));
  }

  // Parks until so many tasks have returned or thrown since the pool was made; those that were
  // dropped do not count. So a caller that has had 100 tasks accepted, and is the only one, waits
  // for completed + failed + 100 of a reading of stats() from before, or for any number less.
  // False when `until` ended the wait, and as soon as the pool is closed and nothing of it is
  // left, because the number is not reached then.
  [[nodiscard]] bool wait_for_completed(std::uint64_t count, const Until& until = {});
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for_completed_for(std::uint64_t count,
                                            std::chrono::duration<Rep, Period> duration) {
    return wait_for_completed(count, Deadline::after(duration));
  }

  // From the return of this call on no task starts; those that run go on, and tasks are accepted as
  // long as there is room. OnFull::caller_runs parks as block does meanwhile. A task that has
  // given its slot back may have to wait for resume() to go on. Ended by resume() and close(); of
  // no effect on a closed pool. Legal inside a task. Never parks.
  void pause() noexcept;
  // Tasks start again, in the order in which they were accepted. Never parks.
  void resume() noexcept;
  [[nodiscard]] bool is_paused() const noexcept;
  // Parks until no task runs: true then. False at once if the pool is not paused, and as soon as
  // the pause is ended. A task that waits for one that has not started runs, too.
  bool wait_paused() { return wait_paused_until({}); }
  // False also when the time was up first.
  [[nodiscard]] bool wait_paused_until(const Until& until);
  template <class Rep, class Period>
  [[nodiscard]] bool wait_paused_for(std::chrono::duration<Rep, Period> duration) {
    return wait_paused_until(Deadline::after(duration));
  }

  // From the next start of a task on, the new capacity holds: surplus idle workers are retired
  // now, surplus busy ones after their task. Tasks accepted before stay accepted. With a capacity
  // below min_workers, as many workers are kept. Throws std::invalid_argument for 0, and for
  // kUnlimited if the pool grows eagerly. Never parks.
  void resize(std::size_t capacity);
  [[nodiscard]] std::size_t capacity() const noexcept;
  // Slots that neither a running nor an accepted task needs; may be stale when it returns.
  [[nodiscard]] std::size_t available() const noexcept;

  // Accepts no more tasks; callers parked in submit get Errc::closed. After close(discard) has
  // returned no task starts. A pause ends: so a drain of a paused pool runs what is queued. Never
  // parks. May be called again, also to discard after a drain.
  void close(Close mode) noexcept;
  // Parks until the pool has been closed and all its fibers have let go of it.
  void join() { (void)join_until({}); }
  // False when the time was up first.
  [[nodiscard]] bool join_until(const Until& until);
  template <class Rep, class Period>
  [[nodiscard]] bool join_for(std::chrono::duration<Rep, Period> duration) {
    return join_until(Deadline::after(duration));
  }
  [[nodiscard]] bool is_closed() const noexcept;
  // What tasks that take a token are given: for what they start elsewhere. A new one after a
  // close(Close::cancel) and reopen(); tasks keep the one of the time when they were submitted.
  [[nodiscard]] std::stop_token stop_token() const noexcept;
  // Accepts tasks again; workers that still drain go on with the new ones. The counters run on.
  // With prestart or on_tick it throws what weft::go() throws, and is open nevertheless. Never
  // parks.
  void reopen();

  [[nodiscard]] PoolStats stats() const noexcept;
  // What PoolOptions::timings has measured.
  [[nodiscard]] PoolTimings timings() const noexcept;

 private:
  friend class detail::BlockingScope;
  friend detail::GroupPool detail::group_pool(FiberPool& pool) noexcept;
  friend class PauseScope;

  // The outermost of the pools around this one, or itself.
  [[nodiscard]] const pool::PoolCore& root() const noexcept;
  [[nodiscard]] std::error_code enqueue(detail::PoolItem item, const Until& until = {});
  [[nodiscard]] std::error_code try_enqueue(detail::PoolItem item);
  [[nodiscard]] std::size_t enqueue_bulk(detail::PoolBatch& batch);
  [[nodiscard]] std::error_code enqueue_until(detail::PoolItem item, const Until& until);
  static void check(std::error_code error) {
    if (error) WEFT_THROW(std::system_error(error));
  }
  // Of no use to a callable that does not take it.
  template <class F>
  [[nodiscard]] std::stop_token token_for() const noexcept {
    if constexpr (detail::kTakesStop<F>) return stop_token();
    return {};
  }
  template <class F>
  [[nodiscard]] detail::PoolItem item_of(F&& callable) {
    using Callable = std::decay_t<F>;
    if constexpr (!detail::kTakesStop<Callable&>) {
      return detail::PoolItem(std::in_place, std::forward<F>(callable));
    } else {
      if (detail::is_empty_callable<Callable>(callable)) return {};
      return detail::PoolItem(
          std::in_place, detail::StoppableTask<Callable>{std::forward<F>(callable), stop_token()});
    }
  }

  template <class F>
  [[nodiscard]] detail::PoolItem item_of(const SubmitOptions& options, F&& callable) {
    using Callable = std::decay_t<F>;
    if (detail::is_empty_callable<Callable>(callable)) return {};
    detail::AttributedTask& task = take_spare_task();
    detail::PoolItem item(task);  // Frees it if it cannot be set.
    task.set(options, token_for<Callable&>(), std::forward<F>(callable));
    return item;
  }
  [[nodiscard]] detail::AttributedTask& take_spare_task();
  template <class Wait>
  [[nodiscard]] bool wait_within_scope(const Until& until, Wait wait) const;

  struct CloseOnStop {
    FiberPool* pool;
    void operator()() noexcept;
  };

  const std::unique_ptr<pool::PoolCore> core_;
  detail::StopRegistration<CloseOnStop> outer_stop_;
};

// A pause that ends with this object, and by no other's resume(): for several who pause the same
// pool, each for as long as it needs. A close ends it, too. As FiberPool::pause() else; the pool
// must outlive it. Neither copied nor moved.
class PauseScope {
 public:
  explicit PauseScope(FiberPool& pool) noexcept;
  ~PauseScope();
  PauseScope(const PauseScope&) = delete;
  PauseScope& operator=(const PauseScope&) = delete;

 private:
  FiberPool& pool_;
  const std::uint64_t number_;  // Of the time in which the pool is open; 0: it was closed.
};

// One pool for the whole process, made at first use, for whoever needs a bound and no pool of their
// own: capacity for each processor, no queue, OnFull::block. Its workers belong to the runtime that
// is current when they are started and retire after 20 ms of idleness, so that the end of a Runtime
// is not held up; a later Runtime may go on with the same pool. Without a Runtime, tasks are
// refused with Errc::no_runtime. From fibers and plain threads.
[[nodiscard]] FiberPool& default_pool();

}  // namespace weft

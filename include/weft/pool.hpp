// A pool of fibers with a hard limit.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <weft/detail/pool_job.hpp>
#include <weft/detail/select_case.hpp>
#include <weft/detail/stop_registration.hpp>
#include <weft/error.hpp>

namespace weft {

inline constexpr std::size_t kUnlimited = SIZE_MAX;
inline constexpr std::chrono::nanoseconds kNever = std::chrono::nanoseconds::max();

// What submit() does when every slot and every place in the queue is taken.
enum class OnFull : std::uint8_t {
  block,        // Park until there is room; first come, first served.
  reject,       // Return Errc::full.
  caller_runs,  // Run the task in the call of submit(), outside the pool's capacity.
  drop_oldest,  // Drop the task that has been queued longest, as Close::discard would. Parties that
                // are parked in submit_until() do not get its place. Errc::full if nothing is
                // queued and yet there is no room: after resize(), while more run than the new
                // capacity.
};

// What close() does with tasks that have been accepted but not started.
enum class Close : std::uint8_t {
  drain,    // They still run.
  discard,  // They are dropped; who waits for one of them is told that it was cancelled.
  cancel,   // As discard; and those that run are asked to stop, if they have taken a token.
};

struct PoolOptions {
  // The most tasks that run at once, and the most workers that live. kUnlimited is allowed.
  std::size_t capacity = std::max<std::size_t>(1, std::thread::hardware_concurrency());
  // So many workers are never retired for being idle. At most `capacity`.
  std::size_t min_workers = 0;
  // Start `min_workers` workers in the constructor and in reopen(), rather than on demand.
  bool prestart = false;
  // Tasks that may wait for a slot. 0: a task is accepted only when a slot is free for it.
  // At least 1 with OnFull::drop_oldest.
  std::size_t queue_capacity = 0;
  OnFull on_full = OnFull::block;
  // The most parties that may be parked in submit at once; more get Errc::too_many_waiting.
  std::size_t max_blocked = kUnlimited;
  // A worker that was idle for so long, and for at most twice as long, is retired.
  std::chrono::nanoseconds idle_timeout = std::chrono::seconds(1);
  // Receives what leaves a submitted task, on the worker, while the task's slot is still held.
  // Called from several workers at once. Empty: one line on stderr. May throw: that too costs
  // one line and no worker. Exceptions of async() and run() go to who waits instead.
  std::function<void(std::exception_ptr)> on_exception = {};
  // A stop request here is a close(Close::cancel), in the call that makes the request; and the pool
  // stays closed then.
  std::stop_token stop = {};
  // As SpawnOptions::stack_size, for every worker.
  std::size_t stack_size = 0;
  // Shown in dumps and in messages.
  std::string name = {};
};

// One consistent reading of a pool.
// Always: submitted = completed + failed + cancelled + busy + lent + in_callers + queued.
struct PoolStats {
  std::size_t live = 0;         // Workers that hold a slot: busy + idle.
  std::size_t busy = 0;         // Workers that run a task.
  std::size_t idle = 0;         // Workers that wait for a task, or have been woken for one.
  std::size_t lent = 0;         // Tasks that wait on their own pool and have lent their slot.
  std::size_t in_callers = 0;   // Tasks that run in submit() (OnFull::caller_runs).
  std::size_t queued = 0;       // Tasks accepted and not started.
  std::size_t blocked = 0;      // Parties parked in submit.
  std::uint64_t submitted = 0;  // Tasks ever accepted.
  std::uint64_t completed = 0;  // Tasks that returned.
  std::uint64_t failed = 0;     // Tasks that threw.
  std::uint64_t cancelled = 0;  // Tasks that were accepted and will never run.
  std::uint64_t rejected = 0;   // Refusals: closed, full, timed out, too many waiting.
  std::uint64_t started = 0;    // Workers ever started.
  std::uint64_t retired = 0;    // Workers that have given up their slot for good.
};

// The handle of a task started by FiberPool::async(). Dropping it lets the task go on alone.
// Several parties may call ready, wait and cancel at once; get() and the destructor only when no
// other call is going on. All calls from fibers and plain threads. A task of the same pool that
// waits lends its slot, and goes on once it has one again, also if its deadline has passed.
template <class R>
class PoolTask {
 public:
  PoolTask() noexcept = default;
  PoolTask(PoolTask&& other) noexcept : job_(std::exchange(other.job_, nullptr)) {}
  PoolTask& operator=(PoolTask&& other) noexcept {
    std::swap(job_, other.job_);
    return *this;
  }
  ~PoolTask() {
    if (job_ != nullptr) job_->release_reference();
  }

  // False for a default-made handle, after get(), and after being moved from. All other calls
  // require valid().
  [[nodiscard]] bool valid() const noexcept { return job_ != nullptr; }
  // True once the task has ended or was cancelled: waiting will not park. Never parks.
  [[nodiscard]] bool ready() const noexcept { return job_->ready(); }
  // Parks until ready(). The end of the task synchronizes with the return.
  void wait() const noexcept { (void)job_->wait_until({}); }
  // False when `until` ended the wait.
  [[nodiscard]] bool wait_until(const Until& until) const noexcept {
    return job_->wait_until(until);
  }
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> duration) const noexcept {
    return wait_until(Deadline::after(duration));
  }
  // Waits, then returns the task's result, or throws its exception; if it was cancelled,
  // std::system_error (std::errc::operation_canceled). The handle is invalid afterwards.
  R get() {
    wait();
    const PoolTask last(std::move(*this));
    return last.job_->take();
  }
  // True if the task will never run: its waiters are told at once. A cancelled task keeps its
  // place in the queue until its turn comes, and is counted as cancelled then. False if the task
  // has begun: it is asked to stop, if it has taken a token, and ends as it likes. Never parks.
  bool cancel() noexcept { return job_->cancel(); }

  // For a select; null for a handle that is not valid.
  [[nodiscard]] detail::PoolJob* job() const noexcept { return job_; }

 private:
  friend class FiberPool;
  explicit PoolTask(detail::PoolOutcome<R>* job) noexcept : job_(job) {}

  detail::PoolOutcome<R>* job_ = nullptr;
};

// A case of a select(): ready once the task has ended or was cancelled. Never, for a handle that is
// not valid. A task of the same pool lends its slot while the select waits.
template <class R, std::invocable Handler = detail::Nothing>
[[nodiscard]] auto on_done(PoolTask<R>& task, Handler handler = {}) {
  return detail::PoolCase<Handler>(task.job(), std::move(handler));
}

// Worker fibers that run tasks, never more than `capacity` at once.
//
// Workers are started on demand, reused last in first out, and retired when idle. Tasks start in
// the order in which they were accepted. Every call may be made from fibers, from tasks of this
// pool and from plain threads; but wait_idle, wait_paused and join throw std::system_error
// (std::errc::resource_deadlock_would_occur) inside a task, which they would wait for. A task that
// waits on its own pool, in submit(), run() or a PoolTask, lends its slot meanwhile, so that
// nested waits never run out of slots. A callable is moved from even if it is refused.
//
// A task that can be called with a std::stop_token gets one, in every form of submission; stop is
// requested of it by close(Close::cancel), and of a task of async() also by PoolTask::cancel().
// It costs nothing where it is not used, and no allocation but in async().
// Synchronizes: a submit with the start of its task; the end of a task with the return of
// whatever waited for it. The pool must be joined or destroyed before the Runtime ends.
class FiberPool {
 public:
  // Throws std::invalid_argument naming the option; with prestart also what weft::go() throws.
  explicit FiberPool(PoolOptions options = {});  // Neither copied nor moved.
  // close(Close::drain), then join().
  ~FiberPool();

  // The submit functions return an empty code when the task was accepted, else: closed, full,
  // timed_out, too_many_waiting, empty_task, or what kept a worker from being started
  // (no_runtime, too_many_fibers, std::errc::not_enough_memory). They throw only what building
  // the task from `callable` throws. This one does what on_full says when there is no room.
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

  // As submit(), with a handle for the result. Throws std::system_error with the code that
  // submit() would have returned, and std::bad_alloc.
  template <detail::PoolCallable F>
  [[nodiscard]] auto async(F&& callable) -> PoolTask<detail::PoolResult<std::decay_t<F>&>> {
    using Result = detail::PoolResult<std::decay_t<F>&>;
    using Call = detail::PoolCall<std::decay_t<F>, Result>;
    if (detail::is_empty_callable<std::decay_t<F>>(callable)) check(Errc::empty_task);
    auto* job = new Call(*core_, detail::PoolJob::Kind::on_heap, token_for<std::decay_t<F>&>(),
                         std::forward<F>(callable));
    PoolTask<Result> task(job);
    check(enqueue(detail::PoolItem(*job)));
    return task;
  }

  // Runs `callable` on a worker and waits for its result, or throws its exception. Refusals are
  // thrown as by async(); a close(Close::discard) as by PoolTask::get(). The call has no
  // allocation of its own.
  template <detail::PoolCallable F>
  auto run(F&& callable) -> detail::PoolResult<F&> {
    if (detail::is_empty_callable<std::decay_t<F>>(callable)) check(Errc::empty_task);
    detail::PoolCall<F&, detail::PoolResult<F&>> job(*core_, detail::PoolJob::Kind::on_stack,
                                                     token_for<F&>(), callable);
    check(enqueue(detail::PoolItem(job)));
    (void)job.wait_until({});
    return job.take();
  }

  // Parks until no task is queued or running. Tasks may be submitted meanwhile and afterwards.
  void wait_idle() { (void)wait_idle_until({}); }
  // False when the time was up first.
  [[nodiscard]] bool wait_idle_until(const Until& until);
  template <class Rep, class Period>
  [[nodiscard]] bool wait_idle_for(std::chrono::duration<Rep, Period> duration) {
    return wait_idle_until(Deadline::after(duration));
  }

  // From the return of this call on no task starts; those that run go on, and tasks are accepted as
  // long as there is room. OnFull::caller_runs parks as block does meanwhile. A task that has
  // lent its slot may have to wait for resume() to go on. Ended by resume() and close(); of no
  // effect on a closed pool. Legal inside a task. Never parks.
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
  // below min_workers, as many workers are kept. Throws std::invalid_argument for 0. Never parks.
  void resize(std::size_t capacity);
  [[nodiscard]] std::size_t capacity() const noexcept;
  // Slots that neither a running nor an accepted task needs; may be stale when it returns.
  [[nodiscard]] std::size_t available() const noexcept;

  // Accepts no more tasks; parties parked in submit get Errc::closed. After close(discard) has
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
  // With prestart it throws what weft::go() throws, and is open nevertheless. Never parks.
  void reopen();

  [[nodiscard]] PoolStats stats() const noexcept;

 private:
  [[nodiscard]] std::error_code enqueue(detail::PoolItem item);
  [[nodiscard]] std::error_code try_enqueue(detail::PoolItem item);
  [[nodiscard]] std::error_code enqueue_until(detail::PoolItem item, const Until& until);
  static void check(std::error_code error) {
    if (error) throw std::system_error(error);
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

  struct CloseOnStop {
    pool::PoolCore* core;
    void operator()() noexcept;
  };

  const std::unique_ptr<pool::PoolCore> core_;
  detail::StopRegistration<CloseOnStop> outer_stop_;
};

}  // namespace weft

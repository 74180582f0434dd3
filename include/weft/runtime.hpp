// Creates and ends the threads that run fibers.
// Context: fibers and plain threads; calls do not park.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <iosfwd>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <weft/detail/wrong_callable.hpp>
#include <weft/go.hpp>

namespace weft {

// A fiber that has kept its worker for so long that other workers must run the fibers queued there.
struct StallReport {
  enum class Kind : std::uint8_t {
    blocked,  // It is in a system call outside of weft.
    busy,     // It computes, or waits for a processor.
  };
  Kind kind;
  unsigned worker;  // The number of the worker.
  std::chrono::nanoseconds lasted;
  // The fiber's name, callable and place of spawn, and a line for each of `calls`.
  std::string_view text;
  // Return addresses of the fiber's calls, innermost first. At most 24; valid until the handler
  // returns. Empty under a sanitizer, without RuntimeOptions::stall_calls, or if the fiber has
  // continued.
  std::span<const void* const> calls = {};
};

struct RuntimeOptions {
  // Worker threads, at most 1024. 0: the value of WEFT_WORKERS, otherwise one per usable processor
  // (affinity mask and cgroup quota respected). In the latter case, if the runtime has a monitor,
  // the number follows changes of both within some 10 s while the runtime works. For more than 1024
  // the constructor throws std::invalid_argument.
  unsigned workers = 0;
  // Bytes of stack of a fiber without SpawnOptions::stack_size. 0 means 64 KiB.
  std::size_t stack_size = 0;
  // The largest number of fibers at once; a spawn beyond it throws Errc::too_many_fibers. The count
  // is accurate to workers x 1024.
  std::size_t max_fibers = std::size_t{1} << 26;
  // Whether spawns fail while the system provides no more stacks. False: they succeed, and the new
  // fibers wait for stacks. True: they throw Errc::too_many_fibers while a fiber waits for a stack.
  // A worker notices this only when it starts a fiber, so up to workers x 1024 spawns may still
  // succeed; accepted fibers wait.
  bool refuse_without_stacks = false;
  // Bytes of memory, without pages of files, that the process should not exceed. From 7/8 of the
  // goal on, unused stacks and records are given back. At the goal spawns throw
  // Errc::too_many_fibers until the process uses less than 15/16 of it. This is checked every 10 ms
  // at least, so up to workers x 1024 spawns may still succeed. 0: 7/8 of the limit of the control
  // group (memory.max, memory.high), if there is one. Spawns then throw only if the fibers, counted
  // as a page each, hold an eighth of the goal. SIZE_MAX: no goal. Without a monitor it has no
  // effect.
  std::size_t memory_goal = 0;
  // Receives exceptions that leave detached fibers. Empty: the process ends (std::terminate) with
  // the throwing stack intact.
  std::function<void(std::exception_ptr)> on_exception = {};
  // Reports stack overflows of fibers by a SIGSEGV and SIGBUS handler, which keeps the library
  // loaded after dlclose(). Faults are passed to the previous handler, an overflow after its
  // report. A handler that is installed later must call this handler.
  bool report_overflow = true;
  // Receives a report of a deadlock: fibers are left, but none can ever run again. No fiber waits
  // for time or a descriptor, and every plain thread waits in this library without a deadline.
  // There are no false alarms; the detection takes at least 0.1 s. Empty: the report goes to stderr
  // and the process aborts. The handler runs on a worker, outside of fibers, once for each
  // deadlock. It may spawn, wake (for example by closing a channel) and end the process. If it
  // throws, or waits in weft, the process ends. weft::blocking runs in place there.
  std::function<void(std::string_view report)> on_deadlock = {};
  // Receives a report, once, of each circle of fibers that wait for each other while other fibers
  // live. Circles consist of waits without a deadline or a stop token: waits for the end of a fiber
  // by a JoinHandle, a WaitGroup or a TaskGroup, and waits for a Mutex or a SharedMutex. The report
  // has the calls of each fiber. There are no false alarms, unless another fiber unlocks for an
  // owner. The monitor searches every minute, and once when all workers have slept for 0.5 s. It
  // calls this on its own thread, under the rules of on_stall. Empty: the report goes to stderr.
  std::function<void(std::string_view report)> on_partial_deadlock = {};
  // Whether each Mutex and SharedMutex records its owners, in all runtimes of the process from now
  // on, so that circles with waits for them are found. Each call that may park then takes some
  // nanoseconds longer. WEFT_LOCK_OWNERS=1 in the environment does the same.
  bool lock_owners = false;
  // A signal, such as SIGQUIT (Ctrl-\ in a terminal), on which the process writes all fibers to
  // stderr and continues. 0: none. WEFT_DUMP_SIGNAL in the environment, a number or HUP, QUIT, USR1
  // or USR2, replaces the option. If the signal is queued with a number, by `kill --queue 5` for
  // example, the process records a profile::processor() for that many seconds instead, at most 60.
  // The file is weft-profile-PID-NUMBER.folded in the folder WEFT_PROFILE_FOLDER of the
  // environment, or in the working directory; stderr gets its name. The constructor throws
  // std::invalid_argument for a signal that cannot be handled or that reports a fault, such as
  // SIGSEGV or SIGABRT, and if a living runtime has another signal.
  int dump_signal = 0;
  // The largest number of threads for calls to weft::blocking; more calls wait. At least 1.
  std::size_t max_blocking_threads = 512;
  // Whether a thread watches the workers while any worker is awake. Without it a fiber that
  // computes or blocks for a long time delays the fibers queued on its worker, unless other workers
  // are idle. The options below then have no effect.
  bool monitor = true;
  // The time after which a fiber that never waits yields, in its next call to weft. At least 1 ms,
  // which is also its accuracy.
  std::chrono::nanoseconds turn = std::chrono::milliseconds(1);
  // A fiber that runs for this long without a switch is a stall: other workers take over the queue
  // of its worker. At least 1 ms.
  std::chrono::nanoseconds stall = std::chrono::milliseconds(10);
  // The largest number of spare workers, which replace stalled workers. At most 1024.
  unsigned max_spare_workers = 16;
  // Called on the monitor's thread, once for each stall. It must not block, and may call weft only
  // as a plain thread may. Empty: a stall of 0.1 s or more is reported on stderr, at most one a
  // second.
  std::function<void(const StallReport&)> on_stall = {};
  // Whether to find the calls of a stalled fiber. A thread in a system call is not disturbed. A
  // computing thread is interrupted by a SIGURG from a timer of its processor time, unless the
  // program handles SIGURG.
  bool stall_calls = true;
};

// Sums over all workers; exact when no fiber runs, otherwise approximate.
struct RuntimeStats {
  unsigned workers = 0;         // The result of Runtime::workers().
  unsigned active_workers = 0;  // Workers that take part now, including spare workers.
  std::uint64_t spawned = 0;    // Fibers spawned so far.
  std::uint64_t finished = 0;   // Fibers that have ended.
  std::uint64_t live = 0;       // spawned - finished.
  // The number of times that a worker switched to another fiber.
  std::uint64_t switches = 0;
  // The number of times that a worker took fibers from another worker.
  std::uint64_t steals = 0;
  std::uint64_t worker_sleeps = 0;   // The number of times that a worker went to sleep.
  std::uint64_t worker_wakeups = 0;  // The number of times that a worker was woken for new work.
  std::uint64_t stalls_blocked = 0;  // Stalls whose fiber was in a system call.
  std::uint64_t stalls_busy = 0;     // Stalls whose fiber computed.
  std::uint64_t spare_workers = 0;   // Spare workers that replace stalled workers now.
  std::uint64_t stacks_carved = 0;   // Stacks that have been set up, in use or not.
  // The number of these stacks whose memory has not been given back.
  std::uint64_t stacks_resident = 0;
  std::uint64_t record_bytes = 0;  // Memory of fiber records.
  // Threads that make the calls for weft::blocking, or are available for them.
  std::uint64_t blocking_threads = 0;
  std::uint64_t memory_goal = 0;           // Bytes; 0 for no goal.
  std::uint64_t memory_goals_reached = 0;  // The number of times that the goal was reached.
  std::uint64_t without_stack = 0;  // Fibers that wait because the system gives no more stacks.
};

namespace scheduler {
class EventSource;
class Scheduler;
}  // namespace scheduler
namespace runtime {
class BlockingPool;
class DumpSignal;
}  // namespace runtime

// Owns the worker threads and all that fibers need. A plain thread spawns to the process's first
// runtime, unless it has a RuntimeScope; when that runtime ends, to the oldest runtime that is
// left. A child of fork() must not use a Runtime of its parent, whose destructor has no effect
// there. The child may make a new Runtime.
class Runtime {
 public:
  // Starts the workers.
  // Context: plain threads; does not park.
  // Throws: std::invalid_argument that names the option, std::bad_alloc, std::system_error if the
  // system refuses a thread, a descriptor or memory.
  explicit Runtime(const RuntimeOptions& options = {});
  // Blocks until every fiber has ended, then stops the workers. After 5 s, or 0.1 s if an exception
  // unwinds the caller, it lists the remaining fibers on stderr once, with the text of an exception
  // of run(). If a fiber has called exit(), this neither waits nor stops workers: the process ends.
  // Context: plain threads; blocks the thread.
  ~Runtime();
  // The parameter is no const reference, which g++ would bind to the braces in Runtime({}).
  Runtime(Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Does the same as weft::go() on this runtime.
  // Throws, Ordering: as weft::go().
  template <std::invocable F>
  void go(F&& callable) {
    spawn_here(detail::Task(std::forward<F>(callable)), SpawnOptions{});
  }
  template <std::invocable F>
  void go(const SpawnOptions& options, F&& callable) {
    spawn_here(detail::Task(std::forward<F>(callable)), options);
  }
  // These overloads exist only for their error messages.
  template <class F>
  requires(!std::invocable<F>) void go(F&&) {
    static_assert(detail::kFits<F>, "weft::Runtime::go: the callable must take no arguments");
  }
  template <class F>
  requires(!std::invocable<F>) void go(const SpawnOptions&, F&&) {
    static_assert(detail::kFits<F>, "weft::Runtime::go: the callable must take no arguments");
  }

  // Runs `main` as a fiber, waits for it, and returns its result.
  // Context: plain threads; blocks the thread.
  // Throws: the exception of `main`, and as go().
  // Ordering: the end of `main` synchronizes with the return.
  template <std::invocable F>
  auto run(F&& main) -> std::invoke_result_t<F&> {
    using Result = std::invoke_result_t<F&>;
    detail::JoinState<Result> state;
    spawn_here(
        [&state, &main] {
          state.store_outcome(main);
          state.finish();
        },
        SpawnOptions{.name = "main"});
    state.join();
    WEFT_TRY { return state.take(); }
    WEFT_CATCH_ALL {
      note_exception();
      WEFT_RETHROW;
    }
  }

  // Waits until every fiber has ended. Fibers may still be spawned later. Returns false if
  // `deadline` passed first; the remaining fibers are then listed on stderr.
  // Context: plain threads; blocks the thread.
  // Throws: std::bad_alloc, for the list.
  [[nodiscard]] bool wait_idle_until(Deadline deadline);
  template <class Rep, class Period>
  [[nodiscard]] bool wait_idle_for(std::chrono::duration<Rep, Period> duration) {
    return wait_idle_until(Deadline::after(duration));
  }

  // Requests the stop of all fibers: this ends waits with stop_token(), and runs stop callbacks.
  void request_stop() noexcept { (void)stop_source_.request_stop(); }
  // Returns the token for waits that end with the runtime: `channel.receive_until(value, token)`.
  [[nodiscard]] std::stop_token stop_token() const noexcept { return stop_source_.get_token(); }
  // Calls request_stop(), and returns wait_idle_until(). The workers run until the destructor.
  // Context: plain threads; blocks the thread.
  // Throws: std::bad_alloc, for the list.
  [[nodiscard]] bool shut_down_until(Deadline deadline) {
    request_stop();
    return wait_idle_until(deadline);
  }
  template <class Rep, class Period>
  [[nodiscard]] bool shut_down_for(std::chrono::duration<Rep, Period> duration) {
    return shut_down_until(Deadline::after(duration));
  }

  // Returns the number of workers that take part while none is stalled.
  [[nodiscard]] unsigned workers() const noexcept;
  // Returns counters and gauges, which may be stale. It visits each worker.
  [[nodiscard]] RuntimeStats stats() const noexcept;
  // Writes a line for each living fiber, a few hundred at most: id, name, state, wait, callable and
  // place of spawn; see docs/diagnosis.md. It takes a lock that spawns sometimes need, so keep it
  // off hot paths.
  // Throws: std::bad_alloc, std::system_error.
  void dump(std::ostream& out) const;
  // Returns the memory of unused stacks and records to the system now, rather than when idle.
  void trim() noexcept;

 private:
  void spawn_here(detail::Task&& task, const SpawnOptions& options);
  // Called in a handler: keeps the text of an exception that run() throws, for the destructor.
  void note_exception() noexcept;
  void await_end() noexcept;

  // Both outlive the scheduler, which provides statistics until it ends.
  std::unique_ptr<scheduler::EventSource> events_;
  std::unique_ptr<runtime::BlockingPool> blocking_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::unique_ptr<runtime::DumpSignal> dump_signal_;
  std::stop_source stop_source_;
  std::string thrown_;  // The text of the last exception of run(); empty if none.
  int unwinding_;       // std::uncaught_exceptions() at the beginning.

  friend class RuntimeScope;
};

// While it lives, spawns of its plain thread go to `runtime`, which must outlive it. Scopes may be
// nested. A fiber spawns to its own runtime: a scope made by a fiber has no effect.
// Context: one plain thread, which also destroys it; no call parks.
class RuntimeScope {
 public:
  // Selects `runtime` for the calling thread.
  explicit RuntimeScope(Runtime& runtime) noexcept;
  // Restores the previous runtime.
  ~RuntimeScope();
  RuntimeScope(const RuntimeScope&) = delete;
  RuntimeScope& operator=(const RuntimeScope&) = delete;

 private:
  bool binds_;
  scheduler::Scheduler* before_ = nullptr;
};

// Does the same as Runtime::dump() for all runtimes of the process.
// Throws: as Runtime::dump().
void dump_fibers(std::ostream& out);

// Runs `main` as a fiber of a new Runtime and waits for it and all other fibers, with the reports
// of ~Runtime(). Returns the result of `main`.
// Context: plain threads; blocks the thread.
// Throws: as Runtime() and Runtime::run().
// Ordering: as Runtime::run().
template <std::invocable F>
auto run(F&& main) -> std::invoke_result_t<F&> {
  Runtime runtime;
  return runtime.run(std::forward<F>(main));
}
template <std::invocable F>
auto run(const RuntimeOptions& options, F&& main) -> std::invoke_result_t<F&> {
  Runtime runtime(options);
  return runtime.run(std::forward<F>(main));
}

// The overloads below exist only for their error messages.
template <class F>
requires(!std::invocable<F>) void run(F&&) {
  static_assert(detail::kFits<F>, "weft::run: the callable must take no arguments");
}
template <class F>
requires(!std::invocable<F>) void run(const RuntimeOptions&, F&&) {
  static_assert(detail::kFits<F>, "weft::run: the callable must take no arguments");
}

}  // namespace weft

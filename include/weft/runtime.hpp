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

// Describes a fiber that has kept its worker so long that other workers take over the queue.
struct StallReport {
  enum class Kind : std::uint8_t {
    blocked,  // The fiber is in a system call outside of weft.
    busy,     // The fiber computes, or waits for a processor.
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
  // The number of worker threads, at most 1024. 0: the value of WEFT_WORKERS, otherwise one per
  // usable processor (affinity mask and cgroup quota). Without WEFT_WORKERS and with a monitor, the
  // number follows changes of mask and quota within about 10 s while the runtime works. For more
  // than 1024 the constructor throws std::invalid_argument.
  unsigned workers = 0;
  // The stack size, in bytes, of a fiber without SpawnOptions::stack_size. 0 means 64 KiB.
  std::size_t stack_size = 0;
  // The largest number of fibers at once; a spawn beyond it throws Errc::too_many_fibers. The count
  // is accurate to workers x 1024.
  std::size_t max_fibers = std::size_t{1} << 26;
  // Whether spawns fail while the system provides no more stacks. False: spawns succeed, and the
  // new fibers wait for stacks. True: spawns throw Errc::too_many_fibers while a fiber waits for a
  // stack. A worker detects missing stacks only when it starts a fiber, so up to workers x 1024
  // spawns may still succeed; accepted fibers wait.
  bool refuse_without_stacks = false;
  // The memory, in bytes and without pages of files, that the process should not exceed. From 7/8
  // of the goal on, unused stacks and records are given back. At the goal, spawns throw
  // Errc::too_many_fibers until the process uses less than 15/16 of the goal. The use is checked at
  // least every 10 ms, so up to workers x 1024 spawns may still succeed. 0: 7/8 of the limit of the
  // control group (memory.max, memory.high), if there is one. Spawns then throw only if the fibers,
  // counted as a page each, hold an eighth of the goal. SIZE_MAX: no goal. The option needs a
  // monitor.
  std::size_t memory_goal = 0;
  // Receives exceptions that leave detached fibers. Empty: the process ends (std::terminate) with
  // the throwing stack intact.
  std::function<void(std::exception_ptr)> on_exception = {};
  // Reports stack overflows of fibers by a SIGSEGV and SIGBUS handler, which keeps the library
  // loaded after dlclose(). The previous handler then receives every fault, and an overflow only
  // after the report. A handler that is installed later must call this handler.
  bool report_overflow = true;
  // Receives a report of a deadlock: fibers exist, but none can ever run again. No fiber waits for
  // time or a descriptor, and every plain thread waits in this library without a deadline. There
  // are no false alarms; the detection takes at least 0.1 s. Empty: the report goes to stderr and
  // the process aborts. The handler runs on a worker, outside of fibers, once for each deadlock.
  // The handler may spawn, wake (for example by closing a channel) and end the process. If it
  // throws, or waits in weft, the process ends. In the handler, weft::blocking runs in place.
  std::function<void(std::string_view report)> on_deadlock = {};
  // Receives one report of each cycle of fibers that wait for each other while other fibers live.
  // Cycles consist of waits without a deadline or a stop token: waits for the end of a fiber by a
  // JoinHandle, a WaitGroup or a TaskGroup, and waits for a Mutex or a SharedMutex. The report has
  // the calls of each fiber. There are no false alarms, unless fibers unlock locks of other fibers.
  // The monitor searches every minute, and once when all workers have slept for 0.5 s. Its thread
  // calls the handler, under the rules of on_stall. Empty: the report goes to stderr.
  std::function<void(std::string_view report)> on_partial_deadlock = {};
  // Whether each Mutex and SharedMutex records its owners, in all runtimes of the process from now
  // on, so that cycles with waits for these locks are found. Each call that may park then takes
  // some nanoseconds longer. WEFT_LOCK_OWNERS=1 in the environment has the same effect.
  bool lock_owners = false;
  // A signal, such as SIGQUIT (Ctrl-\ in a terminal), on which the process writes all fibers to
  // stderr and continues. 0: none. WEFT_DUMP_SIGNAL in the environment, a number or HUP, QUIT, USR1
  // or USR2, overrides the option. If the signal is queued with a number, by `kill --queue 5` for
  // example, the process records a profile::processor() for that many seconds instead, at most 60.
  // The file is weft-profile-PID-NUMBER.folded in the folder WEFT_PROFILE_FOLDER of the
  // environment, or in the working directory; its name is written to stderr. The constructor throws
  // std::invalid_argument for a signal that cannot be handled or that reports a fault, such as
  // SIGSEGV or SIGABRT, and if a living runtime has another signal.
  int dump_signal = 0;
  // The largest number of threads for calls of weft::blocking; further calls wait. At least 1.
  std::size_t max_blocking_threads = 512;
  // Whether a thread watches the workers while any worker is awake. Without a monitor, a fiber that
  // computes or blocks for a long time delays the fibers queued on its worker, unless other workers
  // are idle. The options below then have no effect.
  bool monitor = true;
  // The time after which a fiber that never waits yields in its next call of weft. At least 1 ms,
  // which is also the accuracy.
  std::chrono::nanoseconds turn = std::chrono::milliseconds(1);
  // A fiber that runs for this long without a switch is a stall: other workers take over the queue
  // of its worker. At least 1 ms.
  std::chrono::nanoseconds stall = std::chrono::milliseconds(10);
  // The largest number of spare workers, which replace stalled workers. At most 1024.
  unsigned max_spare_workers = 16;
  // Called on the monitor's thread, once for each stall. The handler must not block, and may call
  // weft only as a plain thread may. Empty: stderr reports a stall of 0.1 s or more, at most once a
  // second.
  std::function<void(const StallReport&)> on_stall = {};
  // Whether to find the calls of a stalled fiber. A thread in a system call is not interrupted. If
  // the thread computes, a timer of its processor time interrupts it with SIGURG, unless the
  // program handles SIGURG.
  bool stall_calls = true;
};

// Holds sums over all workers, which are exact if no fiber runs, and approximate otherwise.
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
  std::uint64_t without_stack = 0;  // Fibers that wait because the system provides no more stacks.
};

namespace scheduler {
class EventSource;
class Scheduler;
}  // namespace scheduler
namespace runtime {
class BlockingPool;
class DumpSignal;
}  // namespace runtime

// Owns the worker threads and everything that fibers need. A plain thread without a RuntimeScope
// starts fibers in the process's first runtime or, after its end, in the oldest living runtime. A
// child of fork() must not use a Runtime of its parent; the destructor of that Runtime has no
// effect in the child. The child may make a new Runtime.
class Runtime {
 public:
  // Starts the workers.
  // Context: plain threads; does not park.
  // Throws: std::invalid_argument that names the option, std::bad_alloc, std::system_error if the
  // system refuses a thread, a descriptor or memory.
  explicit Runtime(const RuntimeOptions& options = {});
  // Blocks until every fiber has ended, then stops the workers. After 5 s, or 0.1 s if an exception
  // unwinds the caller, lists the remaining fibers on stderr once, with the text of an exception of
  // run(). If a fiber has called exit(), does not wait or stop workers, because the process ends.
  // Context: plain threads; blocks the thread.
  ~Runtime();
  // Not const, because g++ would bind a const reference to the braces in Runtime({}).
  Runtime(Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Starts a fiber in this runtime, as weft::go() does.
  // Throws, Ordering: the same as for weft::go().
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
  // Throws: the exception of `main`, and what go() throws.
  // Ordering: the end of `main` synchronizes with the return of run().
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

  // Waits until every fiber has ended. Callers may still spawn fibers later. Returns false if
  // `deadline` passed first; the remaining fibers are then listed on stderr.
  // Context: plain threads; blocks the thread.
  // Throws: std::bad_alloc if the list of fibers cannot be allocated.
  [[nodiscard]] bool wait_idle_until(Deadline deadline);
  template <class Rep, class Period>
  [[nodiscard]] bool wait_idle_for(std::chrono::duration<Rep, Period> duration) {
    return wait_idle_until(Deadline::after(duration));
  }

  // Requests the stop of all fibers: ends waits that use stop_token(), and runs stop callbacks.
  void request_stop() noexcept { (void)stop_source_.request_stop(); }
  // Returns the token for waits that end with the runtime: `channel.receive_until(value, token)`.
  [[nodiscard]] std::stop_token stop_token() const noexcept { return stop_source_.get_token(); }
  // Calls request_stop(), then returns wait_idle_until(deadline). Workers run until the destructor.
  // Context: plain threads; blocks the thread.
  // Throws: std::bad_alloc if the list of fibers cannot be allocated.
  [[nodiscard]] bool shut_down_until(Deadline deadline) {
    request_stop();
    return wait_idle_until(deadline);
  }
  template <class Rep, class Period>
  [[nodiscard]] bool shut_down_for(std::chrono::duration<Rep, Period> duration) {
    return shut_down_until(Deadline::after(duration));
  }

  // Returns the number of workers that take part while no worker is stalled.
  [[nodiscard]] unsigned workers() const noexcept;
  // Returns counters and gauges, which may be stale. The call visits each worker.
  [[nodiscard]] RuntimeStats stats() const noexcept;
  // Writes a line for each living fiber, a few hundred at most: id, name, state, wait, callable and
  // place of spawn; see docs/diagnosis.md. The call takes a lock that spawns sometimes need, so
  // avoid it on hot paths.
  // Throws: std::bad_alloc, std::system_error.
  void dump(std::ostream& out) const;
  // Returns the memory of unused stacks and records to the system at once.
  void trim() noexcept;

 private:
  void spawn_here(detail::Task&& task, const SpawnOptions& options);
  // Called in a catch clause: stores the text of an exception of run(), for the destructor.
  void note_exception() noexcept;
  void await_end() noexcept;

  // events_ and blocking_ outlive the scheduler, which provides statistics until its end.
  std::unique_ptr<scheduler::EventSource> events_;
  std::unique_ptr<runtime::BlockingPool> blocking_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::unique_ptr<runtime::DumpSignal> dump_signal_;
  std::stop_source stop_source_;
  std::string thrown_;  // The text of the last exception of run(); empty if none.
  int unwinding_;       // std::uncaught_exceptions() in the constructor.

  friend class RuntimeScope;
};

// While a RuntimeScope lives, its plain thread starts fibers in `runtime`, which must outlive it.
// Scopes nest. A scope made by a fiber has no effect, because fibers use their own runtime.
// Context: the plain thread that makes the scope must destroy it; no call parks.
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

// Writes the fibers of all runtimes of the process, as Runtime::dump() does.
// Throws: whatever Runtime::dump() throws.
void dump_fibers(std::ostream& out);

// Runs `main` as a fiber of a new Runtime and waits for it and all other fibers, with the reports
// of ~Runtime(). Returns the result of `main`.
// Context: plain threads; blocks the thread.
// Throws: whatever Runtime() and Runtime::run() throw.
// Ordering: the same as for Runtime::run().
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

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

// Describes a fiber that has occupied a worker so long that others take over the worker's queue.
struct StallReport {
  enum class Kind : std::uint8_t {
    blocked,  // The thread sleeps in the kernel, usually in a system call outside of weft.
    busy,     // The fiber is computing, or is waiting for a processor.
  };
  Kind kind;
  unsigned worker;  // The number of the worker.
  std::chrono::nanoseconds lasted;
  // The fiber's name, callable and spawn location, and a line for each of `calls`.
  std::string_view text;
  // The return addresses of the fiber's calls, innermost first. At most 24; valid until the handler
  // returns. Empty if a sanitizer is in use, stall_calls is false, the fiber has already continued,
  // or the calls cannot be read (for example, because the program handles SIGURG).
  std::span<const void* const> calls = {};
};

struct RuntimeOptions {
  // The number of worker threads. 0 means the value of WEFT_WORKERS, by default one per usable
  // processor (affinity mask and cgroup quota). Without WEFT_WORKERS, a runtime with a monitor
  // adapts the number to a new mask or quota within about 10 s while fibers run. The constructor
  // throws std::invalid_argument for more than 1024.
  unsigned workers = 0;
  // The default of SpawnOptions::stack_size, in bytes. 0 means 64 KiB; at most 16 MiB.
  std::size_t stack_size = 0;
  // The maximum number of fibers at once; a spawn beyond it throws Errc::too_many_fibers. The bound
  // is accurate to within 1024 fibers per worker. At least 1.
  std::size_t max_fibers = std::size_t{1} << 26;
  // Whether spawns fail while the system provides no more stacks. If false, spawns succeed, and the
  // new fibers wait for stacks. If true, spawns throw Errc::too_many_fibers while a fiber waits for
  // a stack. A worker detects a lack of stacks only when it starts a fiber. Up to 1024 spawns per
  // worker may therefore still succeed; their fibers wait.
  bool refuse_without_stacks = false;
  // The memory use in bytes, without file pages, that the process should not exceed. From 7/8 of
  // the goal on, the runtime returns unused stacks and fiber records to the system. At the goal,
  // spawns throw Errc::too_many_fibers until the process uses less than 15/16 of the goal. The
  // monitor checks the usage about every 10 ms while a worker is awake, so up to workers x 1024
  // spawns may still succeed. 0 means 7/8 of the control group's limit (memory.max, memory.high),
  // if any. With this default goal, spawns throw only while fiber records and one page per stack
  // make up an eighth of the goal or more. SIZE_MAX: no goal. Requires a monitor.
  std::size_t memory_goal = 0;
  // Receives exceptions that leave fibers started by go(), Runtime::go() or WaitGroup::go().
  // If the function is empty, std::terminate ends the process before the stack is unwound.
  std::function<void(std::exception_ptr)> on_exception = {};
  // Whether a SIGSEGV and SIGBUS handler reports stack overflows. The handler keeps the library
  // loaded after dlclose(). It first reports an overflow, and then passes every fault to the
  // previous handler. A handler that is installed later must call weft's handler.
  bool report_overflow = true;
  // Receives a report of a deadlock: fibers exist, but none can run again. None is waiting for a
  // timer or a descriptor, each plain thread is waiting in weft without a deadline, and the program
  // handles only fault signals. No report is false; detection takes over 0.1 s. A lack of stacks is
  // reported if no fiber has run for 5 s, even if plain threads run. The handler, by default a
  // report on stderr and an abort, runs once per deadlock. It and its blocking() calls run on a
  // worker, outside fibers. It may spawn or wake fibers; a throw or wait in weft ends the process.
  std::function<void(std::string_view report)> on_deadlock = {};
  // Receives one report of each cycle of fibers that wait for each other, even if others run. Of
  // cycles that share a fiber, one is reported. Cycles include only waits without a deadline or
  // stop token: joins (JoinHandle, WaitGroup, TaskGroup) and lock waits (Mutex, SharedMutex).
  // Reports show call stacks. A report is false only if a fiber unlocks another fiber's lock.
  // Unless there are over 5000 such waits, the monitor searches every minute, and once after all
  // workers have slept for 0.5 s. The handler must not block the monitor. If empty, stderr is used.
  std::function<void(std::string_view report)> on_partial_deadlock = {};
  // Whether each Mutex and SharedMutex records its owners, so that reported cycles include waits
  // for locks. If true, it applies to all runtimes until the process ends. Each call that may park
  // then takes a few nanoseconds longer. The environment variable WEFT_LOCK_OWNERS=1 does the same.
  bool lock_owners = false;
  // When the process receives this signal, such as SIGQUIT (Ctrl-\ in a terminal), it writes a
  // dump to stderr and continues. 0: none. The environment variable WEFT_DUMP_SIGNAL (a number,
  // HUP, QUIT, USR1 or USR2) overrides the option. If the signal carries a number (`kill --queue
  // 5`), the process instead calls profile::processor() for that many seconds, at most 60. It
  // writes the result to weft-profile-PID-NUMBER.folded in the folder that the environment variable
  // WEFT_PROFILE_FOLDER names, or else in the working directory. It writes the file's name to
  // stderr. The constructor throws std::invalid_argument if the signal reports a fault (as SIGSEGV
  // does), cannot be handled or differs from another runtime's, or if WEFT_DUMP_SIGNAL is invalid.
  int dump_signal = 0;
  // The maximum number of threads that run weft::blocking calls; further calls wait. At least 1.
  std::size_t max_blocking_threads = 512;
  // Whether a thread watches the workers while any worker is awake. Without a monitor, a fiber that
  // computes or blocks for a long time delays fibers queued on its worker until other workers take
  // them. Also, memory_goal, on_partial_deadlock and the options below then have no effect.
  bool monitor = true;
  // A fiber that has run for this long without waiting yields in its next call that may park. At
  // least 1 ms. Accurate to two sampling periods of the monitor, which are 1 to 40 ms each.
  std::chrono::nanoseconds turn = std::chrono::milliseconds(1);
  // A fiber that runs for this long without a switch is stalled, and other workers take over its
  // worker's queue. At least 1 ms.
  std::chrono::nanoseconds stall = std::chrono::milliseconds(10);
  // The maximum number of spare workers, which replace stalled workers. At most 1024.
  unsigned max_spare_workers = 16;
  // Called on the monitor's thread, once for each stall. The handler must not block, and may call
  // weft only as a plain thread may. If it is empty, the monitor reports stalls of 0.1 s or more on
  // stderr, at most one per second.
  std::function<void(const StallReport&)> on_stall = {};
  // Whether to find the call stack of a stalled fiber. A thread in a system call is not
  // interrupted, because the kernel reports where the thread waits. A thread that is computing is
  // sent SIGURG, unless the program handles SIGURG.
  bool stall_calls = true;
};

// Holds sums over all workers, which are exact if no fiber is running, and approximate otherwise.
struct RuntimeStats {
  unsigned workers = 0;         // The result of Runtime::workers().
  unsigned active_workers = 0;  // Workers that are active now, including spare workers.
  std::uint64_t spawned = 0;    // Fibers spawned so far.
  std::uint64_t finished = 0;   // Fibers that have ended.
  std::uint64_t live = 0;       // spawned - finished.
  // The number of times that a worker switched to another fiber.
  std::uint64_t switches = 0;
  // The number of times that a worker took fibers from another worker.
  std::uint64_t steals = 0;
  std::uint64_t worker_sleeps = 0;   // The number of times that a worker went to sleep.
  std::uint64_t worker_wakeups = 0;  // The number of times that a worker was woken for new work.
  std::uint64_t stalls_blocked = 0;  // Stalls of the kind StallReport::Kind::blocked.
  std::uint64_t stalls_busy = 0;     // Stalls of the kind StallReport::Kind::busy.
  std::uint64_t spare_workers = 0;   // Active workers beyond `workers`, such as spare workers.
  std::uint64_t stacks_carved = 0;   // Stacks that have been set up, in use or not.
  // The part of stacks_carved whose memory has not been returned to the system.
  std::uint64_t stacks_resident = 0;
  std::uint64_t record_bytes = 0;  // Memory of fiber records.
  // Threads that run calls of weft::blocking, or are available for such calls.
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

// Owns worker threads and all state that they share. A plain thread without a RuntimeScope starts
// fibers in the process's first runtime or, after its end, in the oldest living runtime. A child of
// fork() must not use a Runtime of its parent; the destructor of that Runtime has no effect in the
// child. The child may make a new Runtime.
class Runtime {
 public:
  // Starts the workers.
  // Context: plain threads; does not park.
  // Throws: std::invalid_argument that names the option or variable, std::bad_alloc,
  // std::system_error if the system cannot provide a thread, descriptor, signal handler or memory.
  explicit Runtime(const RuntimeOptions& options = {});
  // Blocks until every fiber has ended, then stops the workers. After 5 s, it lists the remaining
  // fibers on stderr once. While an exception unwinds the caller, the time is 0.1 s, and the list
  // names run()'s last exception. Does nothing if a fiber or its blocking() call runs exit().
  // Context: plain threads; blocks the thread.
  ~Runtime();
  // With a const parameter, Runtime({}) would be ambiguous for g++.
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
  // Throws: the exception of `main`, what moving its result throws, and what go() throws.
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

  // Requests a stop of all fibers: waits that use stop_token() end, and stop callbacks run.
  void request_stop() noexcept { (void)stop_source_.request_stop(); }
  // Returns a token for waits that request_stop() ends, such as receive_until(value, token).
  [[nodiscard]] std::stop_token stop_token() const noexcept { return stop_source_.get_token(); }
  // Calls request_stop(), then returns wait_idle_until(deadline). The workers continue to run.
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

  // Returns the number of workers that are active when no worker is stalled.
  [[nodiscard]] unsigned workers() const noexcept;
  // Returns counters and gauges, which may be stale. The call reads the counters of each worker.
  [[nodiscard]] RuntimeStats stats() const noexcept;
  // Writes a line for each of at most 200 living fibers: id, name, state, wait, callable and spawn
  // location (see docs/diagnosis.md). The call stack of a running fiber follows its line. Avoid the
  // call on hot paths: it takes a lock that spawns sometimes need.
  // Throws: exceptions of `out`, std::bad_alloc, std::system_error.
  void dump(std::ostream& out) const;
  // Returns the memory of unused stacks and records to the system, except for workers' caches.
  void trim() noexcept;

 private:
  void spawn_here(detail::Task&& task, const SpawnOptions& options);
  // Called in a catch clause: stores the message of run()'s exception for the destructor.
  void note_exception() noexcept;
  void await_end() noexcept;

  // events_ and blocking_ must outlive the scheduler, which uses them until its end.
  std::unique_ptr<scheduler::EventSource> events_;
  std::unique_ptr<runtime::BlockingPool> blocking_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::unique_ptr<runtime::DumpSignal> dump_signal_;
  std::stop_source stop_source_;
  std::string thrown_;  // The message of the last exception that run() threw, or empty.
  int unwinding_;       // std::uncaught_exceptions() in the constructor.

  friend class RuntimeScope;
};

// While a RuntimeScope exists, the plain thread that made it starts fibers in `runtime`. The
// runtime must outlive the scope. Scopes nest. In a fiber, a scope has no effect.
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

// Runs `main` as a fiber of a new Runtime, and waits until all fibers of that runtime have ended.
// Lists fibers that remain after 5 s, as ~Runtime() does. Returns the result of `main`.
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

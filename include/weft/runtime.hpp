// The birth and death of what runs fibers.
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
#include <weft/go.hpp>

namespace weft {

// A fiber that has kept its worker for long, so that what waits behind it has to be run by others.
struct StallReport {
  enum class Kind : std::uint8_t {
    blocked,  // In a system call that weft does not know.
    busy,     // It computes, or would if other processes left it a processor.
  };
  Kind kind;
  unsigned worker;  // Which of the runtime's workers.
  std::chrono::nanoseconds lasted;
  // The fiber: its name, what it runs, where it was spawned; and a line for each of `calls`.
  std::string_view text;
  // The calls that the fiber is in, innermost first, as addresses that they return to. Up to 24;
  // valid until the handler returns. Empty where they cannot be had, as under a sanitizer, if
  // RuntimeOptions::stall_calls is false, and if the fiber has gone on meanwhile.
  std::span<const void* const> calls = {};
};

struct RuntimeOptions {
  // Worker threads. 0: the variable WEFT_WORKERS if set, else one per usable processor (affinity
  // mask and cgroup quota respected). At most 1024; more throws std::invalid_argument.
  unsigned workers = 0;
  // Bytes of stack of a fiber that asks for none; as SpawnOptions::stack_size. 0 means 64 KiB.
  std::size_t stack_size = 0;
  // The most fibers that may exist at once; spawning beyond throws Errc::too_many_fibers.
  // Counted in blocks of a few hundred, so the limit is met to within workers x 1024.
  std::size_t max_fibers = std::size_t{1} << 26;
  // What happens to spawns when the system gives no more stacks. False: all are accepted, and the
  // new fibers wait for stacks. True: spawning throws Errc::too_many_fibers as long as a fiber
  // waits for a stack. A worker finds out when it starts a fiber, and up to workers x 1024 spawns
  // may be accepted after that; fibers that have been accepted wait.
  bool refuse_without_stacks = false;
  // Receives exceptions that leave detached fibers. Empty: the process ends (std::terminate)
  // with the throwing stack intact.
  std::function<void(std::exception_ptr)> on_exception = {};
  // Report stack overflows of fibers: installs a SIGSEGV and SIGBUS handler, which keeps the
  // library loaded after dlclose(). All faults go on to the handler that was there before, an
  // overflow after its report; a handler that is installed later has to call this one.
  bool report_overflow = true;
  // Called when fibers are left but none can ever run again: each waits for another, no time is
  // waited for, no descriptor, and every plain thread of the process, if there is one, waits in
  // this library too, without a deadline. `report` says what each fiber waits for, and where.
  // Never a false alarm; found after 0.1 s at the earliest. Empty: the report goes to stderr and
  // the process is aborted.
  // It is called on a worker, outside of fibers, once for each deadlock. It may spawn, wake (close
  // a channel, say) and end the process; it must not throw, nor wait for anything in weft: that
  // ends the process with a sentence. weft::blocking runs in place there, and yielding does
  // nothing.
  std::function<void(std::string_view report)> on_deadlock = {};
  // A signal that makes the process write all fibers, as dump_fibers() does, to stderr, and go on:
  // SIGQUIT, say, which a terminal sends for Ctrl-\. 0: none. Its handler is replaced while the
  // runtime lives. Throws std::invalid_argument for a signal that cannot be handled, for signals
  // that report a fault of the program (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT),
  // which must not go on, and for another one than that of a runtime which lives.
  int dump_signal = 0;
  // The most threads that make the calls of weft::blocking at once; more calls wait. At least 1.
  std::size_t max_blocking_threads = 512;
  // A thread that watches the workers while any of them is awake. Without it a fiber that computes
  // or blocks for long keeps what is queued behind it waiting, unless other workers are idle, and
  // the options below have no effect.
  bool monitor = true;
  // A fiber that never has to wait lets others go first after so long, in its next call of weft. At
  // least 1 ms, which is also how exact it is.
  std::chrono::nanoseconds turn = std::chrono::milliseconds(1);
  // A fiber that has run for so long without a switch is a stall: others take over what is queued
  // on its worker. At least 1 ms.
  std::chrono::nanoseconds stall = std::chrono::milliseconds(10);
  // The most worker threads beyond `workers` that stand in for stalled ones. At most 1024.
  unsigned max_spare_workers = 16;
  // Called once for each stall, on the monitor's thread: it must not block, and a plain thread's
  // calls of weft are all it may make. If it is empty, a stall of 0.1 s or more is reported on
  // stderr, at most one a second.
  std::function<void(const StallReport&)> on_stall = {};
  // Find the calls that a stalled fiber is in. A thread that waits in a system call does not notice
  // it. A thread that computes is interrupted for a moment, by a SIGURG that its own processor time
  // brings about; there is none where the program handles SIGURG itself.
  bool stall_calls = true;
};

// Sums over all workers; each figure is exact when nothing runs, and close otherwise.
struct RuntimeStats {
  unsigned workers = 0;
  std::uint64_t spawned = 0;           // Fibers ever spawned.
  std::uint64_t finished = 0;          // Fibers that have ended.
  std::uint64_t live = 0;              // spawned - finished.
  std::uint64_t switches = 0;          // Times a worker went on to another fiber.
  std::uint64_t steals = 0;            // Times a worker took fibers from another.
  std::uint64_t worker_sleeps = 0;     // Times a worker went to sleep.
  std::uint64_t worker_wakeups = 0;    // Times a worker was woken for new work.
  std::uint64_t stalls_blocked = 0;    // Stalls whose fiber was in a system call.
  std::uint64_t stalls_busy = 0;       // Stalls whose fiber computed.
  std::uint64_t spare_workers = 0;     // Workers that stand in for stalled ones now.
  std::uint64_t stacks_carved = 0;     // Stacks that have been set up, in use or not.
  std::uint64_t stacks_resident = 0;   // Stacks among them whose memory has not been given back.
  std::uint64_t record_bytes = 0;      // Memory of fiber records.
  std::uint64_t blocking_threads = 0;  // Threads that make calls of weft::blocking, or could.
  std::uint64_t without_stack = 0;     // Fibers that wait because the system gives no more stacks.
};

namespace scheduler {
class EventSource;
class Scheduler;
}  // namespace scheduler
namespace runtime {
class DumpSignal;
}

// Owns worker threads and everything that fibers need. Plain threads spawn to the process's first
// runtime, unless they have a RuntimeScope; when that one ends, to the oldest that is left. So a
// library that makes a runtime for a while changes nothing for the program around it.
// In the child of a fork there are no workers: a Runtime that was there before must not be used,
// and its destructor does nothing. A new one works. Calls park, throw and synchronize where they
// say so.
class Runtime {
 public:
  // Starts the workers. Call it from a plain thread. Throws std::invalid_argument naming the
  // option, or std::system_error when the system refuses a thread or memory.
  explicit Runtime(const RuntimeOptions& options = {});
  // Parks the calling plain thread until every fiber has ended, then stops the workers.
  // Must not be called from a fiber of this runtime. After 5 s of waiting it lists the fibers that
  // are left on stderr, once; after 0.1 s if an exception unwinds the caller, with what it says if
  // run() has thrown it. Only where a fiber has called exit(), which destroys what is static,
  // nothing is waited for and nothing stopped: the process ends.
  ~Runtime();
  // Not of a const one, which g++ would make of the braces in Runtime({}).
  Runtime(Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Does the same as weft::go, but always to this runtime. Call it from fibers and plain threads.
  template <std::invocable F>
  void go(F&& callable) {
    spawn_here(detail::Task(std::forward<F>(callable)), SpawnOptions{});
  }

  // Runs `main` as a fiber, waits for it, and returns its result or throws its exception; also what
  // go() throws. From a plain thread, which is blocked meanwhile. The end of `main` synchronizes
  // with the return.
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

  // Waits until every fiber has ended, or until `deadline`. Returns false when some are left; they
  // are then listed on stderr with their states. Call it from a plain thread. Fibers may still be
  // spawned later.
  [[nodiscard]] bool wait_idle_until(Deadline deadline);
  // Waits as wait_idle_until() does, for at most `duration`.
  template <class Rep, class Period>
  [[nodiscard]] bool wait_idle_for(std::chrono::duration<Rep, Period> duration) {
    return wait_idle_until(Deadline::after(duration));
  }

  // Asks all to end: the token below says so from now on, and ends the waits that were given it.
  // Call it from fibers and plain threads. Never parks, but stop callbacks run in the call.
  void request_stop() noexcept { (void)stop_source_.request_stop(); }
  // The token with which fibers wait that should end with the runtime:
  // `channel.receive_until(value, token)`. From anywhere; never parks.
  [[nodiscard]] std::stop_token stop_token() const noexcept { return stop_source_.get_token(); }
  // Calls request_stop(), then wait_idle_until(): returns false when fibers have survived, which
  // are then listed on stderr. Call it from a plain thread. The workers go on until the destructor.
  [[nodiscard]] bool shut_down_until(Deadline deadline) {
    request_stop();
    return wait_idle_until(deadline);
  }
  // Waits as shut_down_until() does, for at most `duration`.
  template <class Rep, class Period>
  [[nodiscard]] bool shut_down_for(std::chrono::duration<Rep, Period> duration) {
    return shut_down_until(Deadline::after(duration));
  }

  // Returns RuntimeOptions::workers, or what that was counted to be. Call it from anywhere.
  [[nodiscard]] unsigned workers() const noexcept;
  // Counters and gauges, each of which may be stale when they return. Call it from fibers and plain
  // threads; it walks the workers, and never parks.
  [[nodiscard]] RuntimeStats stats() const noexcept;
  // Writes one line per living fiber, a few hundred at most: id, name, state, what it waits for,
  // the type of its callable, and where it was spawned. docs/diagnosis.md explains them. Call it
  // from fibers and plain threads. Does not park, but takes a lock that spawns need now and then,
  // so keep it off hot paths. Throws std::bad_alloc, std::system_error.
  void dump(std::ostream& out) const;
  // Gives memory of unused stacks and records back to the system now, rather than after a while
  // of idleness. From fibers and plain threads; never parks.
  void trim() noexcept;

 private:
  void spawn_here(detail::Task&& task, const SpawnOptions& options);
  // In a handler: keeps the words of an exception that run() throws, for the destructor.
  void note_exception() noexcept;
  void await_end() noexcept;

  std::unique_ptr<scheduler::EventSource> events_;  // Outlives the scheduler.
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::unique_ptr<runtime::DumpSignal> dump_signal_;
  std::stop_source stop_source_;
  std::string thrown_;  // What the last exception of run() says; empty: none.
  int unwinding_;       // std::uncaught_exceptions() at the beginning.

  friend class RuntimeScope;
};

// While one lives, what its plain thread spawns by weft::go and weft::spawn goes to `runtime`,
// which must not end before it. Scopes may be nested, and end in the reverse order. A fiber spawns
// to its own runtime anyway: made by a fiber, a scope does nothing. It synchronizes with nothing.
class RuntimeScope {
 public:
  // By a plain thread, which remains in it until the destructor. Never parks.
  explicit RuntimeScope(Runtime& runtime) noexcept;
  // The setting of before holds again. By the thread that made it. Never parks.
  ~RuntimeScope();
  RuntimeScope(const RuntimeScope&) = delete;
  RuntimeScope& operator=(const RuntimeScope&) = delete;

 private:
  bool binds_;
  scheduler::Scheduler* before_ = nullptr;
};

// Does the same as Runtime::dump, for all runtimes of the process. Writes nothing when there is
// none.
void dump_fibers(std::ostream& out);

// Runs `main` as a fiber of a new Runtime, waits for it and for all other fibers, and returns its
// result or throws its exception. While it waits for fibers, it reports as ~Runtime() does. From a
// plain thread, which is blocked meanwhile. Synchronizes as Runtime::run().
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

}  // namespace weft

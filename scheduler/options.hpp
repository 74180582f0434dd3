// The options of a scheduler.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>

#include "base/thread.hpp"
#include "fibers/calls/backtrace.hpp"
#include "fibers/stack.hpp"

namespace weft::detail {
class Simulation;
}
namespace weft::fibers {
struct Fiber;
class StackSpace;
}  // namespace weft::fibers

namespace weft::scheduler {

class Desk;
class Helpers;
class Scheduler;
struct WaitCycle;

// Describes a worker that has been running the same fiber for a long time.
struct Stall {
  enum class Kind : std::uint8_t {
    blocked,  // The worker uses no processor time, because it is waiting in a system call.
    busy,     // The worker is computing, or would compute if its thread had a processor.
  };
  Kind kind = Kind::busy;
  unsigned worker = 0;
  // The fiber may no longer be running, but its record stays readable.
  const fibers::Fiber* fiber = nullptr;
  std::chrono::nanoseconds lasted{0};
  const Desk* stuck = nullptr;
  std::uint64_t switches = 0;  // The worker's switch count when it began to run the fiber.
  fibers::StackSpace* stacks = nullptr;

  // Returns the fiber's call stack. The result is empty if the worker has switched to another fiber
  // meanwhile, or if calls_of_thread() cannot read the calls. May be called only inside
  // on_stall, on_blocked and Runtime::dump().
  [[nodiscard]] fibers::Backtrace calls() const noexcept;
};

struct MonitorOptions {
  bool enabled = true;
  // How long a fiber that never waits may run before it yields.
  std::chrono::nanoseconds turn = std::chrono::milliseconds(1);
  // A worker is stuck if its fiber runs this long without a switch.
  std::chrono::nanoseconds stall = std::chrono::milliseconds(10);
  // The maximum number of spare workers that replace stuck workers.
  unsigned spares = 16;
  // The monitor's thread calls on_stall once for each stall that has lasted for report_after.
  std::chrono::nanoseconds report_after = std::chrono::milliseconds(100);
  std::function<void(const Stall&)> on_stall = {};
  // The monitor's thread calls this function once for each cycle of fibers that wait for each
  // other. If it is empty, the monitor does not search for cycles.
  std::function<void(const WaitCycle&)> on_cycle = {};
  // The monitor's thread calls on_blocked for each stall in which the worker is blocked. When the
  // fiber continues, the monitor's thread calls on_continued, unless on_blocked returned 0. The
  // arguments are the number that on_blocked returned and the elapsed time.
  std::function<std::uint64_t(const Stall&)> on_blocked = {};
  std::function<void(std::uint64_t, std::chrono::nanoseconds)> on_continued = {};
};

// Determines how the number of workers adapts to the number of usable processors. The monitor
// compares the two numbers once per period.
struct ProcessorOptions {
  // The monitor's thread calls this function. The result 0 means that the number is unknown.
  std::function<unsigned()> count = &base::usable_processors_hint;
  // The largest number of workers, not counting spares; 0: the number of workers is fixed.
  unsigned most_workers = 0;
  std::chrono::nanoseconds period = std::chrono::seconds(10);
};

struct SchedulerOptions {
  unsigned workers = 1;
  ProcessorOptions processors = {};
  unsigned size_class = fibers::kDefaultSizeClass;
  std::size_t max_fibers = 0;
  std::function<void(std::exception_ptr)> on_exception;
  bool report_overflow = true;
  // The helpers run blocking calls for fibers, and outlive the fibers. If null, fibers cannot make
  // blocking calls, except in a simulation, where fibers make these calls themselves.
  Helpers* helpers = nullptr;
  // A worker calls this function, outside of fibers, once no fiber can ever run again, or when a
  // stack shortage persists (StackShortage). If it is empty, workers do not search for deadlocks.
  std::function<void(Scheduler&)> on_deadlock = {};
  MonitorOptions monitor = {};
  // If `simulation` is not null, `workers` must be 1, and the simulation chooses the fibers that
  // the worker runs.
  detail::Simulation* simulation = nullptr;
  // If true, spawns are refused while a fiber is waiting for a stack.
  bool refuses_without_stacks = false;
  // The memory, in bytes, that the process should not exceed; 0: no goal. The goal has no effect
  // without a monitor.
  std::size_t memory_goal = 0;
  // Whether the program has set memory_goal. With the default goal, spawns are refused only if
  // fibers hold at least an eighth of it (upkeep/memory_goal.hpp).
  bool is_memory_goal_set = false;
};

}  // namespace weft::scheduler

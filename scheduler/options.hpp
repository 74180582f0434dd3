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

class BlockingPool;
class Desk;
class Scheduler;
struct WaitCycle;

// A worker that has been running one fiber for long.
struct Stall {
  enum class Kind : std::uint8_t {
    blocked,  // Its thread uses no processor time: it waits in a system call.
    busy,     // It computes, or would if its thread had a processor.
  };
  Kind kind = Kind::busy;
  unsigned worker = 0;
  // It may not be running any more; its record stays readable.
  const fibers::Fiber* fiber = nullptr;
  std::chrono::nanoseconds lasted{0};
  const Desk* stuck = nullptr;
  std::uint64_t switches = 0;  // The worker's count when it began to run the fiber.
  fibers::StackSpace* stacks = nullptr;

  // Returns the fiber's calls; none if it has switched meanwhile, or where they are not available:
  // see calls_of_thread(). Only on_stall, on_blocked and dumps may call it, until they return.
  [[nodiscard]] fibers::Backtrace calls() const noexcept;
};

struct MonitorOptions {
  bool enabled = true;
  // How long a fiber may run without waiting before it gives way.
  std::chrono::nanoseconds turn = std::chrono::milliseconds(1);
  // A fiber that runs this long makes its worker stuck.
  std::chrono::nanoseconds stall = std::chrono::milliseconds(10);
  // The maximum number of spare workers that replace stuck ones.
  unsigned spares = 16;
  // The monitor's thread calls on_stall for each stall once it has lasted report_after.
  std::chrono::nanoseconds report_after = std::chrono::milliseconds(100);
  std::function<void(const Stall&)> on_stall = {};
  // It calls on_cycle once for each circle of fibers that wait for each other. Empty: it does not
  // look for them.
  std::function<void(const WaitCycle&)> on_cycle = {};
  // The monitor's thread calls on_blocked for each stall that it sees blocked, and later
  // on_continued with the number that on_blocked has returned and the time since; not for 0.
  std::function<std::uint64_t(const Stall&)> on_blocked = {};
  std::function<void(std::uint64_t, std::chrono::nanoseconds)> on_continued = {};
};

// How the number of workers follows the processors that the process may use. The monitor compares
// them at a sample; it makes no sample for that.
struct ProcessorOptions {
  // The monitor's thread calls it. 0: the number is not known now.
  std::function<unsigned()> count = &base::usable_processors_hint;
  // The largest number of workers without spares; 0: the number is fixed.
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
  // Makes blocking calls for fibers; outlives them. Null: fibers make none.
  BlockingPool* blocking = nullptr;
  // A worker calls it, outside of fibers, once no fiber will ever run again. Empty: deadlocks are
  // not searched for.
  std::function<void(Scheduler&)> on_deadlock = {};
  MonitorOptions monitor = {};
  // Makes the decisions of the only worker. Null: the normal rules apply.
  detail::Simulation* simulation = nullptr;
  // If true, no fiber is spawned while one waits for a stack.
  bool refuses_without_stacks = false;
  // Bytes that the process should not exceed; 0 for no goal. Without a monitor it has no effect.
  std::size_t memory_goal = 0;
  bool refuses_at_memory_goal = false;
};

}  // namespace weft::scheduler

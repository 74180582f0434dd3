// What a scheduler is made with.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>

#include "fibers/backtrace.hpp"
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

// A worker that has run one fiber for long.
struct Stall {
  enum class Kind : std::uint8_t {
    blocked,  // Its thread uses no processor time: it waits in a system call.
    busy,     // It computes, or would if its thread were given a processor.
  };
  Kind kind = Kind::busy;
  unsigned worker = 0;
  const fibers::Fiber* fiber = nullptr;  // Perhaps no longer running; its record stays readable.
  std::chrono::nanoseconds lasted{0};
  const Desk* stuck = nullptr;
  std::uint64_t switches = 0;  // That worker's, when it began to run the fiber.
  fibers::StackSpace* stacks = nullptr;

  // Returns the fiber's calls; none if it has gone on meanwhile, and where they cannot be had: see
  // calls_of_thread(). Only on_stall and dumps may call it, until they return.
  [[nodiscard]] fibers::Backtrace calls() const noexcept;
};

struct MonitorOptions {
  bool enabled = true;
  // How long a fiber may go on that never has to wait.
  std::chrono::nanoseconds turn = std::chrono::milliseconds(1);
  // A fiber that has run this long has its worker stuck.
  std::chrono::nanoseconds stall = std::chrono::milliseconds(10);
  // The most workers beyond the usual ones that replace stuck ones.
  unsigned spares = 16;
  // The monitor's thread calls on_stall for each stall once it has lasted report_after.
  std::chrono::nanoseconds report_after = std::chrono::milliseconds(100);
  std::function<void(const Stall&)> on_stall = {};
};

struct SchedulerOptions {
  unsigned workers = 1;
  unsigned size_class = fibers::kDefaultSizeClass;
  std::size_t max_fibers = 0;
  std::function<void(std::exception_ptr)> on_exception;
  bool report_overflow = true;
  // Makes blocking calls for fibers; outlives them. Null: no fiber makes any.
  BlockingPool* blocking = nullptr;
  // A worker calls it, outside of fibers, once no fiber will ever run again. Empty: none looks.
  std::function<void(Scheduler&)> on_deadlock = {};
  MonitorOptions monitor = {};
  // Makes the decisions of an only worker. Null: the rules do.
  detail::Simulation* simulation = nullptr;
  // No fiber is spawned while one waits for a stack.
  bool refuses_without_stacks = false;
};

}  // namespace weft::scheduler

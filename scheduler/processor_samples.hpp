// Samples the call stacks of running workers at regular intervals of processor time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <typeinfo>

#include "base/thread_timer.hpp"
#include "fibers/calls/backtrace.hpp"
#include "fibers/stack.hpp"

namespace weft::scheduler {

// What a worker's thread was executing when its timer sent a signal.
struct ProcessorSample {
  std::uint64_t count = 1;               // Number of signals; above 1 if the kernel merged some.
  bool is_fiber = false;                 // If false, the worker was between fibers.
  fibers::FiberName::Copy name{};        // The fiber's name, or none.
  const std::type_info* type = nullptr;  // The type of the fiber's callable; null: unknown.
  fibers::Backtrace calls;
};

// Samples all workers of the process. Each worker's thread has a timer that sends SIGPROF to the
// thread after each period of processor time. The handler records the registers and copies the
// stack into a slot; it takes no lock and allocates nothing. The owner unwinds the copies. Owner: a
// plain thread. The caller ensures that the process has only one sampler at a time.
class ProcessorSampler {
 public:
  // Returns false if the program handles SIGPROF itself. Must be called before the constructor.
  [[nodiscard]] static bool prepare() noexcept;

  // Throws std::bad_alloc or std::system_error.
  explicit ProcessorSampler(std::chrono::nanoseconds period);
  ~ProcessorSampler();
  ProcessorSampler(const ProcessorSampler&) = delete;
  ProcessorSampler& operator=(const ProcessorSampler&) = delete;

  // Creates timers for workers that have none. Throws std::bad_alloc or std::system_error.
  void follow_workers();
  // Calls `see` with each new sample. Must be called every few milliseconds, because there is room
  // for only 128 samples.
  void drain(const std::function<void(const ProcessorSample&)>& see);
  // Returns the number of samples that were lost because all eight slots that the handler tried
  // were in use.
  [[nodiscard]] static std::uint64_t lost() noexcept;

 private:
  const std::chrono::nanoseconds period_;
  std::map<int, base::ThreadTimer> timers_;  // The key is the kernel's thread ID.
};

}  // namespace weft::scheduler

// Determines whether the fibers of a worker run for long.
#pragma once

#include <cstdint>
#include <utility>

#include "base/thread.hpp"
#include "scheduler/tuning.hpp"
#include "scheduler/worker/pace.hpp"

namespace weft::scheduler {

// Distinguishes long runs from short runs whose thread had to wait for a processor, or was stopped
// by a debugger or a tracer. A system call shows the difference, but a call at each run would cost
// more than it saves. So the worker makes this call occasionally, and only where runs seem to be
// long. Owner: the worker; times are nanoseconds.
class RunLengths {
 public:
  // Evaluates the result of a look. Returns true if the runs have indeed been long.
  [[nodiscard]] bool are_long(const Pace::Progress& progress) noexcept {
    ++looks_;
    if (!progress.average(tuning::kLongRun)) [[likely]]
      return false;
    if (progress.average(tuning::kCertainlyLongRun)) {
      const std::uint64_t preemptions = base::count_preemptions();
      return std::exchange(preemptions_, preemptions) == preemptions;
    }
    if (suspicions_++ % tuning::kSuspicionsPerQuestion != 0) return false;
    // A shorter run may mean that the fiber computed, or that its thread was stopped. So the worker
    // measures the processor time between looks.
    const std::int64_t used = base::thread_processor_time();
    const std::int64_t each =
        (used - std::exchange(used_, used)) / static_cast<std::int64_t>(std::exchange(looks_, 0));
    return each >= tuning::kLongRun / 2;
  }

 private:
  std::uint64_t preemptions_ = 0;
  std::int64_t used_ = 0;
  std::uint64_t looks_ = 0;
  unsigned suspicions_ = 0;
};

}  // namespace weft::scheduler

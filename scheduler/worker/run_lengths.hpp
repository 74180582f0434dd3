// Determines whether the fibers of a worker run for a long time.
#pragma once

#include <cstdint>
#include <utility>

#include "base/thread.hpp"
#include "scheduler/tuning.hpp"
#include "scheduler/worker/pace.hpp"

namespace weft::scheduler {

// Distinguishes long runs from short runs that only seem long, because the thread waited for a
// processor, or a debugger or tracer stopped it. A system call distinguishes the two cases, but it
// costs too much to be made for each run. The worker makes it only occasionally, and only if runs
// seem to be long. Owner: the worker. Times are in nanoseconds.
class RunLengths {
 public:
  // Evaluates the result of a look. Returns true if the runs since the last look really were long.
  [[nodiscard]] bool are_long(const Pace::Progress& progress) noexcept {
    ++looks_;
    if (!progress.average(tuning::kLongRun)) [[likely]]
      return false;
    if (progress.average(tuning::kCertainlyLongRun)) {
      const std::uint64_t preemptions = base::count_preemptions();
      return std::exchange(preemptions_, preemptions) == preemptions;
    }
    if (suspicions_++ % tuning::kSuspicionsPerQuestion != 0) return false;
    // Runs seem long either because the fibers use much processor time, or because their thread has
    // been stopped. The processor time between looks distinguishes the two cases.
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

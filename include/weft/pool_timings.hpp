// Measures how long the tasks of a pool wait and run.
#pragma once

#include <chrono>
#include <weft/histogram.hpp>

namespace weft {

// Holds a consistent snapshot (8 KB) of the times of all tasks that have begun and ended since the
// pool was constructed. All values are 0 without PoolOptions::timings.
struct PoolTimings {
  // The time from the submitting call to the start of the task, including the wait for room.
  Histogram queue_wait;
  // The time from the start of a task to its end, including the time while it is parked.
  Histogram run_time;
  // `first` and `total` begin at the first submitting call. `first` ends when the first task ends,
  // and `total` when the last task ends. `average` is `total` divided by the number of tasks.
  std::chrono::nanoseconds first{};
  std::chrono::nanoseconds total{};
  std::chrono::nanoseconds average{};
};

}  // namespace weft

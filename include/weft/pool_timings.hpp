// Measures how long the tasks of a pool wait and run.
#pragma once

#include <chrono>
#include <weft/histogram.hpp>

namespace weft {

// Holds measurements of all tasks that have begun and ended since the pool's construction, as a
// consistent snapshot of 8 KB. All values are 0 without PoolOptions::timings.
struct PoolTimings {
  // The time from the submitting call to the start of the task, including the wait for room.
  Histogram queue_wait;
  // The time from the start of a task to its end, including parks.
  Histogram run_time;
  // The times from the first submitting call to the first and to the last end of a task. `total`
  // divided by the number of tasks is the average time per task.
  std::chrono::nanoseconds first{};
  std::chrono::nanoseconds total{};
  std::chrono::nanoseconds average{};
};

}  // namespace weft

// How long the tasks of a pool wait and run.
#pragma once

#include <chrono>
#include <weft/histogram.hpp>

namespace weft {

// Measurements of all tasks that have begun and ended since the pool's construction, in a
// consistent reading of 8 KB. All are zero without PoolOptions::timings.
struct PoolTimings {
  // The time from the submitting call to the start of the task, including a park for room.
  Histogram queue_wait;
  // The time from the start of a task to its end, including parks.
  Histogram run_time;
  // The time from the first submitting call to the first end of a task, and to the last end. The
  // average time per task is the latter, divided by the number of tasks.
  std::chrono::nanoseconds first{};
  std::chrono::nanoseconds total{};
  std::chrono::nanoseconds average{};
};

}  // namespace weft

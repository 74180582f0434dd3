// How long the tasks of a pool take.
#pragma once

#include <chrono>
#include <weft/histogram.hpp>

namespace weft {

// Of all tasks that have begun and ended since the pool was made, in one consistent reading of 8
// KB. All zero without PoolOptions::timings.
struct PoolTimings {
  // From the call of a submit function to the start of the task, with the time in which the call
  // was parked for room.
  Histogram queue_wait;
  // From the start of a task to its end, with the time in which it was parked.
  Histogram run_time;
  // From the first call of a submit function to the first end of a task, and to the last one; and
  // that divided by the number of tasks: what each has cost of the whole time.
  std::chrono::nanoseconds first{};
  std::chrono::nanoseconds total{};
  std::chrono::nanoseconds average{};
};

}  // namespace weft

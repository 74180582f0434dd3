// Contains helpers for the workloads of weft_workloads.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

namespace weft::bench {

// Holds what the command line requests.
struct Request {
  unsigned workers = 1;
  double scale = 1;
  std::string pool;

  // Returns the workload's full count, scaled; it is at least 1 even in a smoke run.
  [[nodiscard]] std::size_t count(std::size_t full) const {
    return std::max<std::size_t>(1, static_cast<std::size_t>(static_cast<double>(full) * scale));
  }
};

using Metrics = std::map<std::string, double>;

// Reports a combination of options that is not measured.
class Refusal : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

using Clock = std::chrono::steady_clock;

[[nodiscard]] inline double nanoseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}
[[nodiscard]] inline double milliseconds_since(Clock::time_point start) {
  return nanoseconds_since(start) / 1e6;
}

// Returns nanoseconds per unit of `run(count)`, after a warm-up with a twentieth of the count.
template <class Run>
[[nodiscard]] double per_unit(std::size_t count, Run run) {
  run(std::max<std::size_t>(1, count / 20));
  const auto start = Clock::now();
  run(count);
  return nanoseconds_since(start) / static_cast<double>(count);
}

inline void expect(const char* what, std::int64_t found, std::int64_t expected) {
  if (found == expected) return;
  throw std::runtime_error(std::string(what) + " is " + std::to_string(found) + ", not " +
                           std::to_string(expected));
}

// Each workload runs in the main fiber of a runtime.
Metrics spawn_batches(const Request& request);
Metrics flood_adds(const Request& request);
Metrics flood_empty(const Request& request);
Metrics adds_alone(const Request& request);
Metrics yield_pair(const Request& request);
Metrics yield_beside_stackless(const Request& request);
Metrics ping_pong(const Request& request);
Metrics buffered_items(const Request& request);
Metrics contended_mutex(const Request& request);
Metrics skynet(const Request& request);
Metrics park_and_wake(const Request& request, std::size_t fibers);
Metrics unstarted(const Request& request);
Metrics memory_after_burst(const Request& request);
Metrics sleepers(const Request& request, std::size_t fibers, int sleeps);
Metrics deadlines_met(const Request& request);
Metrics fork_join_fib(const Request& request);
Metrics select_ready(const Request& request);
Metrics select_becomes_ready(const Request& request);
Metrics wake_idle(const Request& request);
Metrics wake_busy(const Request& request);
Metrics mixed_load(const Request& request);
// The ways in which the fibers of W13 wait for their turns. `thread`: a plain thread releases a
// semaphore. `socket`: a plain thread writes to a socket.
enum class Waiting : std::uint8_t { yield, timer, channel, thread, socket };
Metrics fair_turns(const Request& request, std::size_t fibers, Waiting how);
// Measures `fibers` fibers that sleep repeatedly, while nothing else runs.
Metrics light_sleeps(const Request& request, std::size_t fibers, std::chrono::nanoseconds pause);
Metrics pool_batches(const Request& request);
Metrics pool_adds(const Request& request);
Metrics pool_sleeps(const Request& request);
Metrics pool_no_ops(const Request& request, std::size_t submitters);
Metrics timing_run(const Request& request);
Metrics submit_sleeps(const Request& request);
Metrics submit_sleeps_in_parallel(const Request& request);
Metrics sharded_sleeps(const Request& request);
enum class GridTask : std::uint8_t { sleep, trivial };
Metrics users_and_tasks(const Request& request, std::size_t users, GridTask task);
Metrics pool_start_and_end(const Request& request);
Metrics pool_tasks(const Request& request);
Metrics stream_tasks(const Request& request);
Metrics loop_over(const Request& request, std::size_t elements);
Metrics round_trips(const Request& request);

inline constexpr int kAddsPerTask = 100;

}  // namespace weft::bench

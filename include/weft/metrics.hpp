// Provides metrics of the runtimes and pools of a process.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>
#include <weft/pool_options.hpp>
#include <weft/pool_timings.hpp>
#include <weft/runtime.hpp>

namespace weft::metrics {

// Counts durations by powers of two.
// Context: plain value.
struct Distribution {
  // Bucket i counts durations from 2^(i-1) ns to below 2^i ns. The last bucket has no upper bound.
  static constexpr std::size_t kBuckets = 40;
  std::array<std::uint64_t, kBuckets> buckets{};
  std::uint64_t count = 0;
  std::chrono::nanoseconds sum{};
  std::chrono::nanoseconds max{};

  // Returns the duration that `percent` % of all durations do not exceed, accurate to a factor of
  // 2, or `max` if that duration is in the last bucket. Returns 0 if no duration was counted.
  [[nodiscard]] std::chrono::nanoseconds percentile(double percent) const noexcept;
};

struct WorkerMetrics {
  unsigned index = 0;
  bool is_spare = false;            // Whether it is a spare worker, which replaces a stalled one.
  bool is_asleep = false;           // Whether the worker was asleep when it was sampled.
  std::chrono::nanoseconds busy{};  // The time for which the worker's thread was awake.
  // The time for which the worker's thread was asleep, or idle as a spare worker.
  std::chrono::nanoseconds parked{};
  // The longest run of a fiber without a switch, accurate to 50 ms; 0 if there is no monitor.
  std::chrono::nanoseconds longest_run{};
  std::uint64_t spawned = 0;    // Fibers spawned by fibers on this worker.
  std::uint64_t finished = 0;   // Fibers that have ended on this worker.
  std::uint64_t switches = 0;   // How often the worker switched to another fiber.
  std::uint64_t steals = 0;     // How often the worker took fibers from another worker.
  std::uint64_t overflows = 0;  // How often the worker's queue of 256 fibers was full.
  std::uint64_t polls = 0;      // How often the worker polled the kernel for events.
  std::uint64_t timers = 0;     // The number of waits that the worker ended at their deadline.
  std::uint64_t sleeps = 0;     // How often the worker went to sleep.
  std::uint64_t wakeups = 0;    // How often the worker was woken for new work.
  std::size_t queued = 0;       // An estimate of the runnable fibers in the worker's queue.
};

struct ParkedFibers {
  const char* reason = "";  // The reason as dumps show it, such as "channel receive".
  std::uint64_t count = 0;
};

struct RuntimeMetrics {
  unsigned number = 0;  // Runtimes are numbered from 0 in the order of creation, without reuse.
  RuntimeStats stats;
  std::vector<WorkerMetrics> workers;
  // The numbers of fibers in each state. The counts are not taken at one instant.
  std::uint64_t runnable = 0;      // Ready to run, started or not.
  std::uint64_t running = 0;       // On a worker.
  std::uint64_t inlining = 0;      // Waiting for a fiber that runs on the waiter's stack.
  std::uint64_t parked_count = 0;  // The sum of the counts in `parked`.
  std::vector<ParkedFibers> parked;
  // Fibers known to have been parked for at least a minute, or at least an hour.
  std::uint64_t parked_for_minute = 0;
  std::uint64_t parked_for_hour = 0;
  // False if the fibers were not counted, because another caller held their list for 0.1 s.
  bool is_counted = true;
  // Each worker samples about 1000 fibers per second for both fields. The latency is the time for
  // which a fiber is runnable before it runs. The run time is the time until its next switch.
  Distribution scheduling_latency;
  Distribution run_time;
};

struct PoolMetrics {
  std::string name;
  // Distinguishes pools with the same name. A new pool gets the smallest positive number that no
  // existing pool of this name has.
  unsigned number = 1;
  std::size_t capacity = 0;
  bool is_closed = false;
  bool is_paused = false;
  bool has_timings = false;  // Whether PoolOptions::timings is set.
  PoolStats stats;           // Read under the pool's lock, so the numbers are consistent.
  PoolTimings timings;
};

// Pairs of a name and a value, which distinguish the samples of a family.
using Labels = std::vector<std::pair<std::string, std::string>>;

// One sample of a family: a number, or a distribution if the family is a histogram.
struct Sample {
  Labels labels;
  std::uint64_t value = 0;  // In nanoseconds if the family reports seconds.
  Distribution times = {};
};

// Samples with the same name and meaning, which a library or a server reports.
struct Family {
  std::string name;  // The name in Prometheus: "weft_http_requests_total".
  std::string type;  // "counter", "gauge" or "histogram".
  std::string help;
  std::vector<Sample> samples;
};

// The metrics of a process.
struct Reading {
  std::vector<RuntimeMetrics> runtimes;  // Sorted from oldest to newest.
  std::vector<PoolMetrics> pools;        // Named pools, in the order of their creation.
  // The metrics of weft-posix, of each http::Server, and of each net::Server that has a name.
  std::vector<Family> families;
};

// Returns the metrics. The call takes time in proportion to the peak number of fibers: about 5 ms
// for a million. Meanwhile, some spawns wait for locks that the call holds. Counters never
// decrease, and ended fibers never outnumber spawned fibers. Other relations between the numbers
// are exact only while no fiber runs.
// Context: fibers and plain threads; does not park.
// Throws: std::bad_alloc, std::system_error.
[[nodiscard]] Reading read();

// Writes `reading` in Prometheus's text format 0.0.4; docs/watching.md lists the names. In the
// names of pools, bytes that are not UTF-8 become U+FFFD.
// Context: fibers and plain threads; does not park.
// Throws: exceptions of `out`, std::bad_alloc; without `reading`, also exceptions of read().
void write_prometheus(std::ostream& out, const Reading& reading);
inline void write_prometheus(std::ostream& out) { write_prometheus(out, read()); }

// Writes `reading` as a JSON object, with durations in nanoseconds.
// Context, Throws: the same as for write_prometheus().
void write_json(std::ostream& out, const Reading& reading);
inline void write_json(std::ostream& out) { write_json(out, read()); }

}  // namespace weft::metrics

// Figures of the runtimes and pools of a process.
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
  // Bucket i counts durations below 2^i ns that are in no lower bucket; the last has no bound.
  static constexpr std::size_t kBuckets = 40;
  std::array<std::uint64_t, kBuckets> buckets{};
  std::uint64_t count = 0;
  std::chrono::nanoseconds sum{};
  std::chrono::nanoseconds max{};

  // Returns the value that `percent` of all do not exceed, accurate to a factor of 2; 0 if there is
  // none.
  [[nodiscard]] std::chrono::nanoseconds percentile(double percent) const noexcept;
};

struct WorkerMetrics {
  unsigned index = 0;
  bool is_spare = false;            // A spare worker replaces a stuck worker when needed.
  bool is_asleep = false;           // The current value.
  std::chrono::nanoseconds busy{};  // The time that its thread was not asleep.
  // The time that its thread was asleep, or rested as a spare.
  std::chrono::nanoseconds parked{};
  // The longest run of a fiber here without a switch, accurate to 40 ms; 0 without a monitor.
  std::chrono::nanoseconds longest_run{};
  std::uint64_t spawned = 0;    // Fibers spawned by fibers that ran here.
  std::uint64_t finished = 0;   // Fibers that have ended here.
  std::uint64_t switches = 0;   // The number of times that it switched to another fiber.
  std::uint64_t steals = 0;     // The number of times that it took fibers from another worker.
  std::uint64_t overflows = 0;  // The number of times that its queue of 256 was full.
  std::uint64_t polls = 0;      // The number of times that it asked the kernel for events.
  std::uint64_t timers = 0;     // The number of waits that it ended at their deadline.
  std::uint64_t sleeps = 0;     // The number of times that it went to sleep.
  std::uint64_t wakeups = 0;    // The number of times that it was woken for new work.
  std::size_t queued = 0;       // Fibers that are runnable here now.
};

struct ParkedFibers {
  const char* reason = "";  // The text of dumps: "channel receive".
  std::uint64_t count = 0;
};

struct RuntimeMetrics {
  unsigned number = 0;  // Numbered from 0 in the order of creation; never reused.
  RuntimeStats stats;
  std::vector<WorkerMetrics> workers;
  // Numbers of fibers at the time of the reading, counted one after another.
  std::uint64_t runnable = 0;      // Ready, and not started or not running.
  std::uint64_t running = 0;       // On a worker.
  std::uint64_t inlining = 0;      // Waiting for a fiber that runs on their own stack.
  std::uint64_t parked_count = 0;  // The sum over `parked`.
  std::vector<ParkedFibers> parked;
  // Fibers known to have been parked for at least a minute, or at least an hour.
  std::uint64_t parked_for_minute = 0;
  std::uint64_t parked_for_hour = 0;
  // False if the fibers could not be counted within 0.1 s, since another caller held their list.
  bool is_counted = true;
  // A sample of about a thousand fibers per second and worker. The latency ends at a fiber's first
  // step after it becomes runnable, the run at its next switch.
  Distribution scheduling_latency;
  Distribution run_time;
};

struct PoolMetrics {
  std::string name;
  // Distinguishes living pools with the same name: the smallest number, from 1, that was free at
  // its construction.
  unsigned number = 1;
  std::size_t capacity = 0;
  bool is_closed = false;
  bool is_paused = false;
  bool has_timings = false;  // PoolOptions::timings.
  PoolStats stats;           // One consistent reading, under the pool's lock.
  PoolTimings timings;
};

// Labels, as names and values, that distinguish the samples of a family.
using Labels = std::vector<std::pair<std::string, std::string>>;

// One sample of a family: a number, or a distribution if the family is a histogram.
struct Sample {
  Labels labels;
  std::uint64_t value = 0;  // Nanoseconds in a family of seconds.
  Distribution times = {};
};

// Samples of a library or of servers that share a name and a meaning.
struct Family {
  std::string name;  // The name in Prometheus: "weft_http_requests_total".
  std::string type;  // "counter", "gauge" or "histogram".
  std::string help;
  std::vector<Sample> samples;
};

// The metrics of a process.
struct Reading {
  std::vector<RuntimeMetrics> runtimes;  // The oldest first.
  std::vector<PoolMetrics> pools;        // Named pools, in the order of their creation.
  // Families of servers: http::Server, and each net::Server that has a name.
  std::vector<Family> families;
};

// Returns the metrics. The time it takes is proportional to the largest number of fibers that have
// lived at once, about 5 ms for a million. It takes locks that spawns sometimes need. Counters
// never decrease, and ended fibers never outnumber spawned fibers. Apart from that, each figure is
// exact if nothing runs, otherwise approximate.
// Context: fibers and plain threads; does not park.
// Throws: std::bad_alloc, std::system_error.
[[nodiscard]] Reading read();

// Writes the text format of Prometheus, 0.0.4; docs/watching.md lists the names. Bytes of a pool's
// name that are not UTF-8 become U+FFFD.
// Context: fibers and plain threads; does not park.
// Throws: what the stream throws, std::bad_alloc; without a reading also as read().
void write_prometheus(std::ostream& out, const Reading& reading);
inline void write_prometheus(std::ostream& out) { write_prometheus(out, read()); }

// Writes a JSON object; durations are in nanoseconds.
// Context, Throws: as write_prometheus().
void write_json(std::ostream& out, const Reading& reading);
inline void write_json(std::ostream& out) { write_json(out, read()); }

}  // namespace weft::metrics

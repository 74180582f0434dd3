// The runtimes and the pools of a process, in numbers. The calls synchronize with nothing.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>
#include <weft/pool_options.hpp>
#include <weft/pool_timings.hpp>
#include <weft/runtime.hpp>

namespace weft::metrics {

// Durations, counted by powers of two. A plain value.
struct Distribution {
  // Bucket i counts durations of less than 2^i ns that are in no bucket before it; the last one
  // counts all longer ones.
  static constexpr std::size_t kBuckets = 40;
  std::array<std::uint64_t, kBuckets> buckets{};
  std::uint64_t count = 0;
  std::chrono::nanoseconds sum{};
  std::chrono::nanoseconds max{};

  // Returns the value that `percent` of all do not exceed, to within a factor of 2; 0 without
  // values.
  [[nodiscard]] std::chrono::nanoseconds percentile(double percent) const noexcept;
};

struct WorkerMetrics {
  unsigned index = 0;
  bool is_spare = false;              // A spare worker replaces a stuck one when needed.
  bool is_asleep = false;             // Now.
  std::chrono::nanoseconds busy{};    // Since its thread began: not asleep.
  std::chrono::nanoseconds parked{};  // Since its thread began: asleep, or a spare at rest.
  // The longest that a fiber has run here without a switch, to within 10 ms; 0 without a monitor.
  std::chrono::nanoseconds longest_run{};
  std::uint64_t spawned = 0;    // Fibers spawned by fibers that ran here.
  std::uint64_t finished = 0;   // Fibers that have ended here.
  std::uint64_t switches = 0;   // Times it went on to another fiber.
  std::uint64_t steals = 0;     // Times it took fibers from another worker.
  std::uint64_t overflows = 0;  // Times its queue of 256 was full.
  std::uint64_t polls = 0;      // Times it asked the kernel for events.
  std::uint64_t timers = 0;     // Waits that it has ended because their time was up.
  std::uint64_t sleeps = 0;     // Times it went to sleep.
  std::uint64_t wakeups = 0;    // Times it was woken for new work.
  std::size_t queued = 0;       // Fibers that are runnable here now.
};

struct ParkedFibers {
  const char* reason = "";  // A dump shows the same: "channel receive".
  std::uint64_t count = 0;
};

struct RuntimeMetrics {
  unsigned number = 0;  // In the order of their making, from 0 on; never given to another one.
  RuntimeStats stats;
  std::vector<WorkerMetrics> workers;
  // Of fibers at the time of the reading, which were counted one after the other.
  std::uint64_t runnable = 0;      // Ready, and not started or not running.
  std::uint64_t running = 0;       // On a worker.
  std::uint64_t inlining = 0;      // Waiting for one that runs on their own stack.
  std::uint64_t parked_count = 0;  // The sum of the next.
  std::vector<ParkedFibers> parked;
  // False when the fibers could not be counted within 0.1 s: somebody holds their list.
  bool is_counted = true;
  // Of about a thousand fibers a second and worker: from when one becomes runnable on a worker to
  // its first step, and from there to its next switch.
  Distribution scheduling_latency;
  Distribution run_time;
};

struct PoolMetrics {
  std::string name;
  // Tells apart the pools of one name, for as long as each lives: the smallest from 1 on that no
  // other one had when it was made.
  unsigned number = 1;
  std::size_t capacity = 0;
  bool is_closed = false;
  bool is_paused = false;
  bool has_timings = false;  // PoolOptions::timings.
  PoolStats stats;           // One consistent reading, under the pool's lock.
  PoolTimings timings;
};

// The metrics of a process.
struct Reading {
  std::vector<RuntimeMetrics> runtimes;  // The oldest first.
  std::vector<PoolMetrics> pools;        // Pools with a name, in the order of their making.
};

// Call it from fibers and plain threads. Does not park; takes time in proportion to the most fibers
// that have lived at once, about 5 ms for a million, and locks that spawns need now and then.
// Counters never go backwards from one reading to the next, and no more fibers have ended than were
// spawned; else each figure is exact when nothing runs, and close otherwise. Throws std::bad_alloc,
// std::system_error.
[[nodiscard]] Reading read();

// In the text format of Prometheus, 0.0.4; docs/watching.md has all names. Bytes of a pool's name
// that are not UTF-8 become U+FFFD. From fibers and plain threads; never parks. Throws what the
// stream throws, and std::bad_alloc.
void write_prometheus(std::ostream& out, const Reading& reading);
inline void write_prometheus(std::ostream& out) { write_prometheus(out, read()); }

// One JSON object. Durations are in nanoseconds. From and throws as write_prometheus().
void write_json(std::ostream& out, const Reading& reading);
inline void write_json(std::ostream& out) { write_json(out, read()); }

}  // namespace weft::metrics

// The thread that finds stuck workers.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>
#include <weft/deadline.hpp>
#include <weft/detail/atomic.hpp>

#include "fibers/backtrace.hpp"

namespace weft::fibers {
struct Fiber;
}

namespace weft::scheduler {

class Scheduler;
class Worker;

// A worker that has run one fiber for long.
struct Stall {
  enum class Kind : std::uint8_t {
    blocked,  // Its thread uses no processor time: it waits in a system call.
    busy,     // It computes, or would if its thread were given a processor.
  };
  Kind kind = Kind::busy;
  unsigned worker = 0;
  const fibers::Fiber* fiber = nullptr;  // Perhaps no longer running; its record stays readable.
  std::chrono::nanoseconds lasted{0};
  const Worker* stuck = nullptr;
  std::uint64_t switches = 0;  // That worker's, when it began to run the fiber.

  // Returns the fiber's calls; none if it has gone on meanwhile, and where they cannot be had: see
  // calls_of_thread(). Only on_stall may call it, until it returns.
  [[nodiscard]] fibers::Backtrace calls() const noexcept;
};

struct MonitorOptions {
  bool enabled = true;
  // How long a fiber may go on that never has to wait.
  std::chrono::nanoseconds turn = std::chrono::milliseconds(1);
  // A fiber that has run this long has its worker stuck.
  std::chrono::nanoseconds stall = std::chrono::milliseconds(10);
  // The most workers beyond the usual ones that replace stuck ones.
  unsigned spares = 16;
  // The monitor's thread calls on_stall for each stall once it has lasted report_after.
  std::chrono::nanoseconds report_after = std::chrono::milliseconds(100);
  std::function<void(const Stall&)> on_stall = {};
};

// Samples all workers: which fiber each runs, and how often it has switched. A fiber that is there
// at two samples is asked to give way when its turn is over. A fiber that is there for `stall` has
// its worker stuck; the thread's processor clock and state say whether it is blocked or computes.
// For each blocked worker a spare one works, and one more when all that are not blocked compute and
// something waits. A spare steals what the stuck worker has queued, sees to its timers, and holds
// the watch, as any worker does; it rests again when it is not needed any more.
// The period is 1 ms while fibers are seen that run for long, else up to 10 ms, and up to 20 ms while
// no worker is seen awake. When all workers have slept for a while the monitor sleeps too, until one
// of them rises.
// Order
//   [asleep]  run raises asleep_; full_fence; the workers are seen to sleep, against: a worker ends
//             its sleep; full_fence; asleep_ is read (work_begins). One sees the other.
class Monitor {
 public:
  Monitor(Scheduler& scheduler, const MonitorOptions& options);
  ~Monitor() { stop(); }
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  // Starts the thread, if enabled. Throws std::system_error.
  void start();
  void stop() noexcept;
  [[nodiscard]] bool is_running() const noexcept { return thread_.joinable(); }

  // A worker that has slept calls it, after a full fence.
  void work_begins() noexcept {
    if (asleep_.load(detail::relaxed) != 0) [[unlikely]]  // [asleep]
      rise();
  }

  // Stalls so far. Relaxed: statistics.
  [[nodiscard]] std::uint64_t blocked_stalls() const noexcept {
    return blocked_stalls_.load(detail::relaxed);
  }
  [[nodiscard]] std::uint64_t busy_stalls() const noexcept {
    return busy_stalls_.load(detail::relaxed);
  }
  // The longest that a fiber has run on a worker without a switch, in nanoseconds; seen by samples,
  // so to within 20 ms, and 0 without a monitor. Relaxed: statistics.
  [[nodiscard]] std::int64_t longest_run(std::size_t worker) const noexcept {
    return longest_runs_[worker].load(detail::relaxed);
  }

 private:
  // A worker as it was seen.
  struct Sight {
    const fibers::Fiber* fiber = nullptr;
    std::uint64_t switches = 0;
    std::int64_t since = 0;           // When this run was seen first.
    std::int64_t processor_time = 0;  // At the sample before.
    bool is_stuck = false;
    bool is_blocked = false;
    bool is_told = false;
  };
  struct Verdict {
    unsigned blocked = 0;
    unsigned computing = 0;
    unsigned others = 0;  // Awake and moving, or asleep.
    bool long_runs = false;
    bool anybody_awake = false;
  };

  void run() noexcept;
  [[nodiscard]] Verdict sample(std::int64_t now, std::int64_t elapsed) noexcept;
  void look_at(Worker& worker, Sight& sight, std::int64_t now, std::int64_t elapsed,
               Verdict& verdict) noexcept;
  void judge(Worker& worker, Sight& sight, std::int64_t now, std::int64_t elapsed) noexcept;
  void provide_spares(const Verdict& verdict) noexcept;
  void rouse_sleepers(const Verdict& verdict) noexcept;
  void pause(std::int64_t nanoseconds) noexcept;
  void sleep() noexcept;
  void rise() noexcept;

  Scheduler& scheduler_;
  const MonitorOptions options_;
  std::vector<Sight> sights_;
  std::vector<detail::Atomic<std::int64_t>> longest_runs_;  // One for each worker.
  detail::Atomic<std::uint32_t> asleep_{0};
  detail::Atomic<std::uint32_t> stopping_{0};  // Order: [stop] stop raises (release) -> run loads.
  detail::Atomic<std::uint64_t> blocked_stalls_{0};
  detail::Atomic<std::uint64_t> busy_stalls_{0};
  std::thread thread_;
};

}  // namespace weft::scheduler

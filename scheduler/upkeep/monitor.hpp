// The thread that finds stuck workers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>
#include <weft/detail/atomic.hpp>

#include "scheduler/options.hpp"
#include "scheduler/upkeep/census.hpp"
#include "scheduler/upkeep/wait_cycles.hpp"

namespace weft::fibers {
struct Fiber;
}

namespace weft::scheduler {

class Desk;
class Shared;

// Samples which fiber each worker runs, and how often each worker has switched. If a fiber has not
// switched since the previous sample and its turn is over, the monitor makes it give way. A worker
// is stuck if its fiber has run for MonitorOptions::stall; the processor time and state of its
// thread show whether the worker is blocked or computing. The monitor provides a spare worker for
// each blocked worker. It provides one more if all other workers are computing while fibers are
// waiting for a worker. A spare steals the fibers that the stuck worker has queued, and runs that
// worker's timers. The spare also waits for descriptors if no other worker does. The spare becomes
// inactive again when it is no longer needed. The period between samples is 1 ms while samples show
// long runs, and otherwise up to 10 ms. It is up to 40 ms while samples show all workers asleep. At
// each sample the monitor also does other work that is due, such as counting waiting fibers or
// comparing the memory with its goal. When all workers have slept for a while, the monitor also
// sleeps until a worker wakes up: see MonitorRest.
class Monitor {
 public:
  // `call_workers(n)` makes n workers active, or fewer if the system cannot create threads.
  Monitor(Shared& shared, std::function<void(unsigned)> call_workers);
  ~Monitor() { stop(); }
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  // Starts the thread if the options enable the monitor. Throws std::system_error if the system
  // cannot create the thread.
  void start();
  void stop() noexcept;
  [[nodiscard]] bool is_running() const noexcept { return thread_.joinable(); }

  // Returns the number of stalls so far. Relaxed: statistics.
  [[nodiscard]] std::uint64_t blocked_stalls() const noexcept {
    return blocked_stalls_.load(detail::relaxed);
  }
  [[nodiscard]] std::uint64_t busy_stalls() const noexcept {
    return busy_stalls_.load(detail::relaxed);
  }
  // Returns the longest time, in nanoseconds, that a fiber has run on `worker` without a switch.
  // The monitor sees a run only in its samples, so the result may be up to 50 ms too small. Returns
  // 0 without a monitor. Relaxed: statistics.
  [[nodiscard]] std::int64_t longest_run(std::size_t worker) const noexcept {
    return longest_runs_[worker].load(detail::relaxed);
  }

 private:
  // The monitor's record of one worker.
  struct Sight {
    const fibers::Fiber* fiber = nullptr;
    std::uint64_t switches = 0;
    std::int64_t since = 0;           // When this run was first seen.
    std::int64_t processor_time = 0;  // The thread's processor time at the previous sample.
    bool is_stuck = false;
    bool is_blocked = false;
    bool is_told = false;
    std::int64_t blocked_at = 0;  // When on_blocked was called; 0 before the call.
    std::uint64_t number = 0;     // The return value of on_blocked.
  };
  struct Verdict {
    unsigned blocked = 0;
    unsigned computing = 0;
    unsigned others = 0;  // The number of workers that are asleep, or awake and not stuck.
    bool long_runs = false;
    bool is_alert = false;  // Whether a long run requires frequent samples.
    bool anybody_awake = false;
  };

  void run() noexcept;
  [[nodiscard]] Verdict sample(std::int64_t now, std::int64_t elapsed) noexcept;
  void look_at(Desk& desk, Sight& sight, std::int64_t now, std::int64_t elapsed,
               Verdict& verdict) noexcept;
  void judge(Desk& desk, Sight& sight, std::int64_t now, std::int64_t elapsed) noexcept;
  void mind_processors(std::int64_t now) noexcept;
  [[nodiscard]] unsigned spares_for(const Verdict& verdict) const noexcept;
  void provide_workers(const Verdict& verdict) noexcept;
  void tell(const Desk& desk, Sight& sight, std::int64_t now) noexcept;
  void tell_end(const Sight& sight, std::int64_t now) noexcept;
  void rouse_sleepers(const Verdict& verdict) noexcept;
  // Returns the number of switches that all workers have made. Relaxed: the sum must be exact only
  // while all workers are asleep, when no worker changes it.
  [[nodiscard]] std::uint64_t count_switches() const noexcept;
  void pause(std::int64_t nanoseconds) noexcept;

  Shared& shared_;
  const MonitorOptions& options_;  // Owned by the scheduler.
  const std::function<void(unsigned)> call_workers_;
  std::vector<Sight> sights_;
  unsigned spares_ = 0;               // The wanted number of spares.
  std::int64_t next_processors_ = 0;  // When the processors are counted next, in nanoseconds.
  Census census_;
  CycleWatch cycles_;
  std::vector<detail::Atomic<std::int64_t>> longest_runs_;  // One for each worker.
  // Order: [stop] stop() stores 1 (release) -> run() loads it (acquire): run() then returns.
  detail::Atomic<std::uint32_t> stopping_{0};
  detail::Atomic<std::uint64_t> blocked_stalls_{0};
  detail::Atomic<std::uint64_t> busy_stalls_{0};
  std::thread thread_;
};

}  // namespace weft::scheduler

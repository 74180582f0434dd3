// Determines whether any fiber can still run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <weft/deadline.hpp>
#include <weft/detail/atomic.hpp>
#include <weft/detail/waist.hpp>

#include "fibers/calls/backtrace.hpp"
#include "scheduler/sleep/parked_threads.hpp"
#include "scheduler/tuning.hpp"

namespace weft::scheduler {

class Shared;

// Returns whether only this process can end the wait. Returns false for waits that the kernel or
// another process ends, and for waits for a stack, which StackShortage watches.
[[nodiscard]] constexpr bool ends_from_inside(detail::WaitReason reason) noexcept {
  return reason != detail::WaitReason::readable && reason != detail::WaitReason::writable &&
         reason != detail::WaitReason::select_socket && reason != detail::WaitReason::blocking &&
         reason != detail::WaitReason::stack;
}

// Detects that fibers exist and that none of them can ever run again. README.md, "Deadlocks",
// describes the checks, and why they never raise a false alarm. The worker that went to sleep last
// is on watch. It searches for a deadlock after it has slept for a while, and then again at growing
// intervals. The search costs nothing while workers have work, and very little while they are idle.
class DeadlockWatch {
 public:
  explicit DeadlockWatch(Shared& shared) noexcept : shared_(shared) {}
  DeadlockWatch(const DeadlockWatch&) = delete;
  DeadlockWatch& operator=(const DeadlockWatch&) = delete;

  // A worker that goes to sleep calls this function. Relaxed here and below: a stale value causes
  // an extra search, or delays a search until a worker next goes to sleep.
  void take_over(unsigned worker) noexcept { on_watch_.store(worker, detail::relaxed); }
  [[nodiscard]] bool is_on_watch(unsigned worker) const noexcept {
    return on_watch_.load(detail::relaxed) == worker;
  }
  // A worker that is about to become inactive calls pass_on(). If the result is true, the worker
  // must then unpark a sleeping worker, which calls try_take() before it sleeps again. Relaxed: the
  // unpark provides the ordering.
  [[nodiscard]] bool pass_on(unsigned worker) noexcept {
    return on_watch_.compare_exchange_strong(worker, kNobody, detail::relaxed, detail::relaxed);
  }
  [[nodiscard]] bool try_take(unsigned worker) noexcept {
    unsigned nobody = kNobody;
    return is_on_watch(kNobody) &&
           on_watch_.compare_exchange_strong(nobody, worker, detail::relaxed, detail::relaxed);
  }

  enum class Finding : std::uint8_t {
    deadlock,  // A new deadlock, which has not been found before.
    doubt,     // The state may become a deadlock while all workers are asleep: search again.
    waiting,   // The kernel will end a wait, so no search is needed until a worker wakes.
  };
  // The worker on watch calls this function, on its idle stack, after it has woken.
  [[nodiscard]] Finding find(unsigned worker);
  // Returns the number of searches. Relaxed: only tests read it, and they poll until it grows.
  [[nodiscard]] std::uint64_t looks() const noexcept { return looks_.load(detail::relaxed); }

 private:
  struct Evidence {
    std::uint64_t switches;  // The sum over all workers; it grows whenever a fiber runs.
    ParkedThreads::Counts threads;
    friend bool operator==(const Evidence&, const Evidence&) = default;
  };

  [[nodiscard]] std::optional<Evidence> collect(unsigned worker) const noexcept;
  [[nodiscard]] Finding judge_fibers() const;

  static constexpr unsigned kNobody = ~0U;

  Shared& shared_;
  detail::Atomic<unsigned> on_watch_{0};
  detail::Atomic<std::uint64_t> looks_{0};
  // The number of switches when a deadlock was last found. Relaxed: at worst, another worker reads
  // a stale value, and reports the same deadlock again.
  detail::Atomic<std::uint64_t> found_at_{0};
};

// Determines when the worker on watch next searches for a deadlock.
class WatchPauses {
 public:
  void restart() noexcept { schedule(tuning::kFirstDeadlockPause); }
  void lengthen() noexcept {
    schedule(pause_ * 2 < tuning::kLongestDeadlockPause ? pause_ * 2
                                                        : tuning::kLongestDeadlockPause);
  }
  // Postpones the search until after `until`, the time at which a timer is due. An earlier search
  // would find no deadlock, because the timer may still wake a fiber.
  void put_off(Deadline until) noexcept {
    const Deadline last =
        Deadline::at_nanoseconds(Deadline::never().nanoseconds() - tuning::kFirstDeadlockPause);
    if (next_ < until) {
      next_ = Deadline::at_nanoseconds(std::min(until, last).nanoseconds() +
                                       tuning::kFirstDeadlockPause);
    }
  }
  // No search is due until restart() is called.
  void stop() noexcept { next_ = Deadline::never(); }
  [[nodiscard]] Deadline next() const noexcept { return next_; }

 private:
  void schedule(std::int64_t pause) noexcept {
    pause_ = pause;
    next_ = Deadline::at_nanoseconds(Deadline::now_nanoseconds() + pause);
  }

  std::int64_t pause_ = tuning::kFirstDeadlockPause;
  Deadline next_ = Deadline::never();
};

}  // namespace weft::scheduler

// Handles new fibers for which the system provides no stack.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <weft/detail/atomic.hpp>
#include <weft/detail/thread_mutex.hpp>

#include "fibers/stack.hpp"
#include "scheduler/queues/ready_list.hpp"
#include "scheduler/tuning.hpp"

namespace weft::scheduler {

class Shared;

// Holds the fibers that have not started because the system provides no stack for them. They are in
// no run queue, so fibers that have stacks run as usual. A freed stack goes to the fiber that has
// waited longest for a stack of this size. Every 10 ms a worker requests stacks from the system
// again. README.md, "Fibers without a stack", shows why every such fiber eventually gets a stack. A
// line on stderr reports a shortage after 10 ms, and then every 10 s. If no fiber has run for 5 s,
// and neither the clock nor the kernel will wake one, the worker reports a deadlock. In such a
// deadlock, fibers with stacks wait for fibers without stacks. Unlike DeadlockWatch, this check
// ignores plain threads. A thread that parks repeatedly, to poll for results, would otherwise hide
// the deadlock. All counters are relaxed, because locks protect the lists, and a stale count delays
// a fiber by only 10 ms.
class StackShortage {
 public:
  explicit StackShortage(Shared& shared) noexcept : shared_(shared) {}
  StackShortage(const StackShortage&) = delete;
  StackShortage& operator=(const StackShortage&) = delete;

  // Called by a worker that has found no stack for the fiber. A pinned fiber is only counted,
  // because the worker to which it is pinned keeps it in a separate list.
  void put_aside(fibers::Fiber& fiber, std::int64_t now) noexcept;
  // Returns the fiber that has waited longest for a stack of this size; null if there is no
  // such fiber.
  [[nodiscard]] fibers::Fiber* take(unsigned size_class) noexcept;
  // Called when a pinned fiber has received its stack.
  void note_pinned_served(unsigned size_class) noexcept;

  [[nodiscard]] bool anyone_waits() const noexcept { return waiting() != 0; }
  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_.load(detail::relaxed); }
  [[nodiscard]] const detail::Atomic<std::size_t>& count() const noexcept { return waiting_; }
  [[nodiscard]] bool anyone_waits_for(unsigned size_class) const noexcept {
    return anyone_pinned_waits_for(size_class) || is_listed(size_class);
  }
  // Returns whether a fiber that is not pinned is waiting for a stack of this size.
  [[nodiscard]] bool is_listed(unsigned size_class) const noexcept {
    return lists_[size_class].size_hint() != 0;
  }
  [[nodiscard]] bool anyone_pinned_waits_for(unsigned size_class) const noexcept {
    return pinned_[size_class].load(detail::relaxed) != 0;
  }
  // Returns whether a worker must return its free stacks to the scheduler before it falls asleep.
  [[nodiscard]] bool is_recent(std::int64_t now) const noexcept {
    return now - alarm_.load(detail::relaxed) < 2 * tuning::kStackAlarmPeriod;
  }
  // Returns true to only one worker every 10 ms. That worker requests stacks from the system, and
  // calls report() if a request fails.
  [[nodiscard]] bool begin_request(std::int64_t now) noexcept;
  // Called by a worker, on its idle stack, after its request for a stack has failed.
  void report(std::int64_t now) noexcept;

 private:
  void raise_alarm(std::int64_t now) noexcept;
  [[nodiscard]] bool others_may_end() noexcept;
  void look(std::int64_t now) noexcept WEFT_REQUIRES(mutex_);
  void write_line(std::int64_t now) noexcept WEFT_REQUIRES(mutex_);

  Shared& shared_;
  detail::Atomic<std::size_t> waiting_{0};
  std::array<ReadyList, fibers::kStackSizes> lists_;
  std::array<detail::Atomic<std::uint32_t>, fibers::kStackSizes> pinned_{};
  detail::Atomic<std::int64_t> alarm_{
      -2 * tuning::kStackAlarmPeriod};  // When raise_alarm() last woke all workers.
  detail::Atomic<std::int64_t> next_request_{0};
  detail::ThreadMutex mutex_;  // A worker that finds it locked leaves the report to the holder.
  std::int64_t next_line_ WEFT_GUARDED_BY(mutex_) = 0;
  // When the current period without a running fiber began. A new shortage or a deadlock report
  // begins a new period.
  std::int64_t still_since_ WEFT_GUARDED_BY(mutex_) = 0;
  std::int64_t last_report_ WEFT_GUARDED_BY(mutex_) = 0;
  std::uint64_t switches_ WEFT_GUARDED_BY(mutex_) = 0;
};

}  // namespace weft::scheduler

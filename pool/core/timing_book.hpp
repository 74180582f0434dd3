// The time measurements of a pool whose PoolOptions::timings is true.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <weft/deadline.hpp>
#include <weft/detail/atomic.hpp>
#include <weft/detail/pool_job.hpp>
#include <weft/pool_timings.hpp>

namespace weft::pool {

// The timestamps of one task, in nanoseconds of the monotonic clock.
struct Lap {
  std::int64_t submitted = 0;
  std::int64_t started = 0;
  std::int64_t ended = 0;
};

// The pool's lock guards the measurements; only stamp_submit() may be called without it.
class TimingBook {
 public:
  // Returns the current time for a call to a submit function. Any thread may call it, without the
  // lock.
  [[nodiscard]] std::int64_t stamp_submit() noexcept {
    const std::int64_t now = Deadline::now_nanoseconds();
    // Relaxed: the value publishes no other data.
    if (first_submit_.load(detail::relaxed) == 0) {
      std::int64_t none = 0;
      (void)first_submit_.compare_exchange_strong(none, now, detail::relaxed, detail::relaxed);
    }
    return now;
  }
  // Ignores a cancelled task, which did not run, and a drain task, which the program did not
  // submit.
  void record(const Lap& lap, detail::PoolJob::Outcome outcome) noexcept {
    using Outcome = detail::PoolJob::Outcome;
    if (outcome == Outcome::cancelled || outcome == Outcome::drained) return;
    timings_.queue_wait.record(std::chrono::nanoseconds(lap.started - lap.submitted));
    timings_.run_time.record(std::chrono::nanoseconds(lap.ended - lap.started));
    // The order of the records may differ from the order in which the tasks ended.
    first_end_ = std::min(first_end_, lap.ended);
    last_end_ = std::max(last_end_, lap.ended);
  }
  [[nodiscard]] PoolTimings read() const noexcept {
    PoolTimings timings = timings_;
    if (const auto count = static_cast<std::int64_t>(timings.run_time.count())) {
      const std::int64_t first_submit = first_submit_.load(detail::relaxed);
      timings.first = std::chrono::nanoseconds(first_end_ - first_submit);
      timings.total = std::chrono::nanoseconds(last_end_ - first_submit);
      timings.average = timings.total / count;
    }
    return timings;
  }

 private:
  detail::Atomic<std::int64_t> first_submit_{0};  // 0: no submit yet.
  std::int64_t first_end_ = INT64_MAX;
  std::int64_t last_end_ = 0;
  PoolTimings timings_;  // read() computes the fields `first`, `total` and `average`.
};

}  // namespace weft::pool

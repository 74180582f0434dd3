// A fiber's wait with a deadline.
#pragma once

#include <weft/deadline.hpp>
#include <weft/detail/waist.hpp>

#include "scheduler/timers/timers.hpp"
#include "scheduler/worker/current_worker.hpp"
#include "scheduler/worker/worker.hpp"

namespace weft::scheduler {

// Each sleep, timed park and alarm has a TimedWait. It contains the deadline, the fiber's waker,
// and the timer in the wheel of the worker on which the wait begins. Once the wait has begun, the
// fiber may continue on another worker at any moment. A TimedWait on the fiber's stack may
// therefore no longer exist when begin() or begin_sleep() returns.
class TimedWait {
 public:
  // If `claim` is null, only the clock ends the wait.
  explicit TimedWait(Deadline deadline, detail::Claim* claim = nullptr) noexcept
      : deadline_(deadline) {
    timer_.claim = claim;
  }
  TimedWait(const TimedWait&) = delete;
  TimedWait& operator=(const TimedWait&) = delete;

  [[nodiscard]] detail::Waker waker() const noexcept { return timer_.waker; }
  void set_waker(detail::Waker fiber) noexcept { timer_.waker = fiber; }

  void begin() noexcept { current_worker()->add_timer(timer_, deadline_); }
  // Works like begin(). Requires that the fiber has parked on this worker, and that only the clock
  // can wake it.
  void begin_sleep() noexcept { current_worker()->add_sleep(timer_, deadline_); }
  [[nodiscard]] bool has_begun() const noexcept { return timer_.home != nullptr; }
  // Requires that the wait has begun, and that the clock has not ended it. After the call, the
  // clock cannot end the wait.
  void cancel() noexcept { timer_.home->cancel(timer_); }

 private:
  const Deadline deadline_;
  Timer timer_;
};

}  // namespace weft::scheduler

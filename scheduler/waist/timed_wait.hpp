// A fiber's wait that the clock ends.
#pragma once

#include <weft/deadline.hpp>
#include <weft/detail/waist.hpp>

#include "scheduler/timers/timers.hpp"
#include "scheduler/worker/current_worker.hpp"
#include "scheduler/worker/worker.hpp"

namespace weft::scheduler {

// The deadline that is under each sleep, timed park and alarm: when, which fiber, and the timer in
// the wheel of the worker on which the wait begins. Once it has begun, the fiber may continue on
// another worker at any moment; so a wait that is on the fiber's stack may be gone when begin() or
// begin_sleep() returns.
class TimedWait {
 public:
  // Without a claim only the clock ends the wait.
  explicit TimedWait(Deadline deadline, detail::Claim* claim = nullptr) noexcept
      : deadline_(deadline) {
    timer_.claim = claim;
  }
  TimedWait(const TimedWait&) = delete;
  TimedWait& operator=(const TimedWait&) = delete;

  [[nodiscard]] detail::Waker waker() const noexcept { return timer_.waker; }
  void set_waker(detail::Waker fiber) noexcept { timer_.waker = fiber; }

  void begin() noexcept { current_worker()->add_timer(timer_, deadline_); }
  // Does the same for a fiber that runs on this thread and only the clock wakes.
  void begin_sleep() noexcept { current_worker()->add_sleep(timer_, deadline_); }
  [[nodiscard]] bool has_begun() const noexcept { return timer_.home != nullptr; }
  // It has begun, and the clock has not ended it: from now on the clock does not.
  void cancel() noexcept { timer_.home->cancel(timer_); }

 private:
  const Deadline deadline_;
  Timer timer_;
};

}  // namespace weft::scheduler

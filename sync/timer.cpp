#include <weft/timer.hpp>

#include <weft/detail/turn.hpp>

namespace weft::detail {

// The caller holds the lock.
bool ClockSource::take_if_due() noexcept {
  if (!due_.passed()) return false;
  if (period_.count() == 0) {
    due_ = Deadline::never();
  } else {
    // The next tick on the ticker's grid.
    const std::int64_t late = Deadline::now_nanoseconds() - due_.nanoseconds();
    const std::int64_t periods = late / period_.count() + 1;
    due_ = Deadline::at_nanoseconds(due_.nanoseconds() + periods * period_.count());
  }
  return true;
}

bool ClockSource::try_wait() noexcept {
  const detail::SpinGuard guard(lock_);
  return take_if_due();
}

bool ClockSource::wait_until(const Until& until) noexcept {
  give_way_if_due();
  for (;;) {
    lock_.lock();
    if (take_if_due()) {
      lock_.unlock();
      return true;
    }
    if (until.is_over()) {
      lock_.unlock();
      return false;
    }
    // Whatever the result, the caller checks again.
    Waiter self;
    (void)wait_in_until(waiters_, lock_, self, WaitReason::timer, until.but_before(due_));
  }
}

bool ClockSource::set(Deadline due, std::chrono::nanoseconds period) noexcept {
  lock_.lock();
  const bool was_set = !due_.is_never();
  due_ = due;
  period_ = period;
  Waiter* waiting = waiters_.claim_all();
  lock_.unlock();
  wake_chain(waiting);
  return was_set;
}

}  // namespace weft::detail

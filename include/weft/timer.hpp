// Moments that can be waited for, moved and taken back.
#pragma once

#include <chrono>
#include <concepts>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <weft/detail/alarm.hpp>
#include <weft/detail/exceptions.hpp>
#include <weft/detail/select_case.hpp>
#include <weft/detail/waiter.hpp>

namespace weft {

namespace detail {

// The clock of a Timer or Ticker: a moment, after which one wait is let through, or one each
// period. Nothing runs when the moment comes; each waiter has set a clock for it, and a later
// caller looks at the time. So a timer without waiters costs nothing, and a caller that has moved
// the moment can be sure that nothing of the old one is left. Invariant: waiters_ holds the
// waiters; a caller that moves due_ wakes them all to look again.
class ClockSource {
 public:
  ClockSource(Deadline due, std::chrono::nanoseconds period) noexcept
      : due_(due), period_(period) {}
  ClockSource(const ClockSource&) = delete;
  ClockSource& operator=(const ClockSource&) = delete;

  [[nodiscard]] bool try_wait() noexcept;
  [[nodiscard]] bool wait_until(const Until& until) noexcept;
  // Returns true if a moment was set and no wait for it had succeeded.
  bool set(Deadline due, std::chrono::nanoseconds period) noexcept;

  // For a select, with the lock held.
  [[nodiscard]] SpinLock& lock() noexcept WEFT_RETURNS_LOCK(lock_) { return lock_; }
  [[nodiscard]] WaitList& waiters() noexcept WEFT_REQUIRES(lock_) { return waiters_; }
  [[nodiscard]] Deadline due() const noexcept WEFT_REQUIRES(lock_) { return due_; }

 private:
  [[nodiscard]] bool take_if_due() noexcept WEFT_REQUIRES(lock_);

  SpinLock lock_;
  Deadline due_ WEFT_GUARDED_BY(lock_);                     // never(): not set.
  std::chrono::nanoseconds period_ WEFT_GUARDED_BY(lock_);  // 0: due_ is taken once.
  WaitList waiters_ WEFT_GUARDED_BY(lock_);
};

template <class Handler>
class ClockCase final : public SelectCase {
 public:
  ClockCase(ClockSource& source, Handler handler)
      : SelectCase(&source.lock(), &source.waiters()),
        source_(source),
        handler_(std::move(handler)) {}

  void handle() override { handler_(); }

 private:
  bool attempt() noexcept override { return source_.try_wait(); }
  // The select holds the source's lock, which it knows by a pointer.
  bool is_ready() noexcept override WEFT_NOT_ANALYZED { return source_.due().passed(); }
  Deadline due() noexcept override WEFT_NOT_ANALYZED { return source_.due(); }
  bool conclude() noexcept override { return false; }  // It has been moved.

  ClockSource& source_;
  Handler handler_;
};

}  // namespace detail

// Go's time.Timer: goes off once, at a moment that can be moved or taken back. Make all calls from
// fibers and plain threads, any number of callers at once; one of them gets each expiry. After
// stop() or reset() has returned, no wait is let through by the earlier moment. It may be destroyed
// once no caller waits. Calls park, throw and synchronize where they say so.
class Timer {
 public:
  // Not set.
  Timer() noexcept : Timer(Deadline::never()) {}
  explicit Timer(Deadline deadline) noexcept : clock_(deadline, {}) {}
  template <class Rep, class Period>
  explicit Timer(std::chrono::duration<Rep, Period> duration) noexcept
      : Timer(Deadline::after(duration)) {}

  // Parks until it has gone off, forever if it is not set; then it is not set any more.
  void wait() noexcept { (void)wait_until({}); }
  // Returns false when `until` ended the wait.
  [[nodiscard]] bool wait_until(const Until& until) noexcept { return clock_.wait_until(until); }
  // Returns whether it had gone off and no caller had taken that. Never parks.
  [[nodiscard]] bool try_wait() noexcept { return clock_.try_wait(); }

  // Returns true if it was set, and no wait had been let through. Waiters go on waiting.
  bool stop() noexcept { return clock_.set(Deadline::never(), {}); }
  // Sets it, anew or for the first time. Returns what stop() would have.
  bool reset(Deadline deadline) noexcept { return clock_.set(deadline, {}); }
  template <class Rep, class Period>
  bool reset(std::chrono::duration<Rep, Period> duration) noexcept {
    return reset(Deadline::after(duration));
  }

  // For a select.
  [[nodiscard]] detail::ClockSource& clock() noexcept { return clock_; }

 private:
  detail::ClockSource clock_;
};

// Go's time.Ticker: lets one wait through each period. At most one tick without a waiter is kept: a
// late waiter gets it at once, misses the ticks in between, and is back in step then. Calls as for
// Timer.
class Ticker {
 public:
  // The first tick comes after one period, which is rounded up to nanoseconds. Throws
  // std::invalid_argument unless `period` is above 0.
  template <class Rep, class Period>
  explicit Ticker(std::chrono::duration<Rep, Period> period)
      : Ticker(Checked{detail::saturated_nanoseconds(period)}) {}

  // Parks until the next tick; forever after stop().
  void wait() noexcept { (void)wait_until({}); }
  // Does the same as wait(); false when `until` ended the wait, and no tick has been taken.
  [[nodiscard]] bool wait_until(const Until& until) noexcept { return clock_.wait_until(until); }
  // Takes the tick that is due, if there is one. Never parks.
  [[nodiscard]] bool try_wait() noexcept { return clock_.try_wait(); }

  // No more ticks, until a reset.
  void stop() noexcept { (void)clock_.set(Deadline::never(), {}); }
  // The next tick comes after one period from now. Throws as the constructor.
  template <class Rep, class Period>
  void reset(std::chrono::duration<Rep, Period> period) {
    const Checked checked{detail::saturated_nanoseconds(period)};
    (void)clock_.set(Deadline::after(checked.period), checked.period);
  }

  // For a select.
  [[nodiscard]] detail::ClockSource& clock() noexcept { return clock_; }

 private:
  struct Checked {
    explicit Checked(std::chrono::nanoseconds given) : period(given) {
      if (period.count() > 0) return;
      WEFT_THROW(std::invalid_argument("weft::Ticker: period = " + std::to_string(period.count()) +
                                       " ns, must be above 0"));
    }
    std::chrono::nanoseconds period;
  };

  explicit Ticker(const Checked& checked)
      : clock_(Deadline::after(checked.period), checked.period) {}

  detail::ClockSource clock_;
};

// Cases of a select(): the timer goes off, a tick comes. Made by the caller of the select(), which
// alone parks and synchronizes; throws what moving `handler` throws.
template <std::invocable Handler = detail::Nothing>
[[nodiscard]] auto on_expiry(Timer& timer, Handler handler = {}) {
  return detail::ClockCase<Handler>(timer.clock(), std::move(handler));
}
// See on_expiry(); a tick that is chosen has been taken.
template <std::invocable Handler = detail::Nothing>
[[nodiscard]] auto on_tick(Ticker& ticker, Handler handler = {}) {
  return detail::ClockCase<Handler>(ticker.clock(), std::move(handler));
}

// A call that the clock will make, in a fiber of its own; Go's time.AfterFunc. Dropping it leaves
// the call as it is. It has no stack before its time comes. Its calls synchronize with nothing.
class DelayedCall {
 public:
  DelayedCall() noexcept = default;

  // Returns true if the call will not be made: it is destroyed soon, by its fiber. Returns false if
  // it has begun, was stopped before, or there is none. From fibers and plain threads; never parks.
  bool stop() noexcept { return alarm_ != nullptr && detail::cancel_alarm(*alarm_); }

 private:
  template <std::invocable F>
  friend DelayedCall call_at(Deadline deadline, F&& callable);

  explicit DelayedCall(detail::Alarm* alarm) noexcept : alarm_(alarm) {}
  detail::AlarmHandle alarm_;
};

// Starts a detached fiber that runs `callable`, at `deadline`; see go(). Never parks. A runtime
// that ends waits for all calls that have been set and not stopped.
template <std::invocable F>
DelayedCall call_at(Deadline deadline, F&& callable) {
  return DelayedCall(detail::set_alarm(deadline, detail::Task(std::forward<F>(callable))));
}
// Does the same as call_at(), for `duration` from now.
template <class Rep, class Period, std::invocable F>
DelayedCall call_after(std::chrono::duration<Rep, Period> duration, F&& callable) {
  return call_at(Deadline::after(duration), std::forward<F>(callable));
}

}  // namespace weft

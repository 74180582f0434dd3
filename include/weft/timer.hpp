// Makes timers that callers can wait for, change and stop.
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
#include <weft/detail/wrong_callable.hpp>
#include <weft/go.hpp>
#include <weft/spawn_options.hpp>

namespace weft {

namespace detail {

// Holds the time of a Timer or Ticker, after which one wait succeeds, or one wait in each period.
// No code runs at that time. Each waiter has its own timer, and a later caller reads the clock. So
// a timer without waiters costs nothing, and a change of the time requires no clean-up.
// Invariant: waiters_ contains all waiters; a caller that changes due_ wakes all of them.
class ClockSource {
 public:
  ClockSource(Deadline due, std::chrono::nanoseconds period) noexcept
      : due_(due), period_(period) {}
  ClockSource(const ClockSource&) = delete;
  ClockSource& operator=(const ClockSource&) = delete;

  [[nodiscard]] bool try_wait() noexcept;
  [[nodiscard]] bool wait_until(const Until& until) noexcept;
  // Returns true if a time was set and no wait for it had succeeded.
  bool set(Deadline due, std::chrono::nanoseconds period) noexcept;

  // Accessors for a select, which holds the lock.
  [[nodiscard]] SpinLock& lock() noexcept WEFT_RETURNS_LOCK(lock_) { return lock_; }
  [[nodiscard]] WaitList& waiters() noexcept WEFT_REQUIRES(lock_) { return waiters_; }
  [[nodiscard]] Deadline due() const noexcept WEFT_REQUIRES(lock_) { return due_; }

 private:
  [[nodiscard]] bool take_if_due() noexcept WEFT_REQUIRES(lock_);

  SpinLock lock_;
  Deadline due_ WEFT_GUARDED_BY(lock_);                     // never(): not set.
  std::chrono::nanoseconds period_ WEFT_GUARDED_BY(lock_);  // 0: the timer expires once.
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
  // The select holds the source's lock, but the lock analysis cannot see that.
  bool is_ready() noexcept override WEFT_NOT_ANALYZED { return source_.due().passed(); }
  Deadline due() noexcept override WEFT_NOT_ANALYZED { return source_.due(); }
  bool conclude() noexcept override { return false; }  // The time was changed meanwhile.

  ClockSource& source_;
  Handler handler_;
};

}  // namespace detail

// Works like Go's time.Timer: it expires once, at a time that can be changed or withdrawn. One
// waiter receives each expiry. After stop() or reset() has returned, the old time ends no wait.
// Context: fibers and plain threads; wait(), wait_until() and wait_for() park.
// Lifetime: the object may be destroyed once no caller waits.
class Timer {
 public:
  // Makes a timer that is not set, or that is set to a deadline.
  Timer() noexcept : Timer(Deadline::never()) {}
  explicit Timer(Deadline deadline) noexcept : clock_(deadline, {}) {}
  template <class Rep, class Period>
  explicit Timer(std::chrono::duration<Rep, Period> duration) noexcept
      : Timer(Deadline::after(duration)) {}

  // Parks until the timer has expired, and unsets it. Parks forever while it is not set.
  void wait() noexcept { (void)wait_until({}); }
  // Waits as wait() does; returns false if `until` ended the wait.
  [[nodiscard]] bool wait_until(const Until& until) noexcept { return clock_.wait_until(until); }
  // Unsets the timer and returns true if the timer has expired; returns false otherwise.
  [[nodiscard]] bool try_wait() noexcept { return clock_.try_wait(); }

  // Unsets the timer; waiters keep waiting. Returns true if a time was set and no wait succeeded.
  bool stop() noexcept { return clock_.set(Deadline::never(), {}); }
  // Sets a new time. Returns what stop() would have returned.
  bool reset(Deadline deadline) noexcept { return clock_.set(deadline, {}); }
  template <class Rep, class Period>
  bool reset(std::chrono::duration<Rep, Period> duration) noexcept {
    return reset(Deadline::after(duration));
  }

  // Returns the clock, for select cases.
  [[nodiscard]] detail::ClockSource& clock() noexcept { return clock_; }

 private:
  detail::ClockSource clock_;
};

// Works like Go's time.Ticker: one wait succeeds in each period. A ticker keeps one tick while
// there is no waiter. A late waiter receives that tick at once and skips the ticks in between.
// Context, Lifetime: as for Timer.
class Ticker {
 public:
  // Makes a ticker that ticks after each `period`, rounded up to nanoseconds.
  // Throws: std::invalid_argument unless `period` is above 0.
  template <class Rep, class Period>
  explicit Ticker(std::chrono::duration<Rep, Period> period)
      : Ticker(Checked{detail::saturated_nanoseconds(period)}) {}

  // Parks until the next tick; parks forever after stop().
  void wait() noexcept { (void)wait_until({}); }
  // Waits as wait() does; returns false, and takes no tick, if `until` ended the wait.
  [[nodiscard]] bool wait_until(const Until& until) noexcept { return clock_.wait_until(until); }
  // Takes the tick that is due; returns false if no tick is due.
  [[nodiscard]] bool try_wait() noexcept { return clock_.try_wait(); }

  // Ends the ticks until a reset().
  void stop() noexcept { (void)clock_.set(Deadline::never(), {}); }
  // Sets the next tick to one period from now.
  // Throws: as for the constructor.
  template <class Rep, class Period>
  void reset(std::chrono::duration<Rep, Period> period) {
    const Checked checked{detail::saturated_nanoseconds(period)};
    (void)clock_.set(Deadline::after(checked.period), checked.period);
  }

  // Returns the clock, for select cases.
  [[nodiscard]] detail::ClockSource& clock() noexcept { return clock_; }

 private:
  struct Checked {
    explicit Checked(std::chrono::nanoseconds given) : period(given) {
      if (period.count() > 0) return;
      WEFT_THROW(std::invalid_argument("weft::Ticker: period = " + std::to_string(period.count()) +
                                       " ns; must be above 0"));
    }
    std::chrono::nanoseconds period;
  };

  explicit Ticker(const Checked& checked)
      : clock_(Deadline::after(checked.period), checked.period) {}

  detail::ClockSource clock_;
};

// Makes a select case that is ready when the timer expires.
// Context, Throws: whatever on_stop() throws.
template <std::invocable Handler = detail::Nothing>
[[nodiscard]] auto on_expiry(Timer& timer, Handler handler = {}) {
  return detail::ClockCase<Handler>(timer.clock(), std::move(handler));
}
// Makes a select case that is ready at a tick, and takes the tick if it is chosen.
// Context, Throws: whatever on_stop() throws.
template <std::invocable Handler = detail::Nothing>
[[nodiscard]] auto on_tick(Ticker& ticker, Handler handler = {}) {
  return detail::ClockCase<Handler>(ticker.clock(), std::move(handler));
}

// Refers to a call that a timer makes in a new fiber, as Go's time.AfterFunc does. The destructor
// does not affect the call, which has no stack until it begins.
// Context: fibers and plain threads; does not park.
class DelayedCall {
 public:
  DelayedCall() noexcept = default;

  // Prevents the call; its fiber then destroys the callable. Returns false if there is no call, or
  // if the call has begun or was stopped before.
  bool stop() noexcept { return alarm_ != nullptr && alarm_->cancel(); }

 private:
  template <std::invocable F>
  friend DelayedCall call_at(Deadline deadline, F&& callable);

  explicit DelayedCall(detail::Alarm* alarm) noexcept : alarm_(alarm) {}
  detail::AlarmHandle alarm_;
};

// At `deadline`, starts a detached fiber that runs `callable`. The destructor of a runtime waits
// for all pending calls that are not stopped.
// Context, Throws: whatever go() throws.
template <std::invocable F>
DelayedCall call_at(Deadline deadline, F&& callable) {
  return DelayedCall(detail::set_alarm(deadline, detail::Task(std::forward<F>(callable))));
}
// Makes the call `duration` from now.
// Context, Throws: whatever go() throws.
template <class Rep, class Period, std::invocable F>
DelayedCall call_after(std::chrono::duration<Rep, Period> duration, F&& callable) {
  return call_at(Deadline::after(duration), std::forward<F>(callable));
}

// Works as call_at(), in a fiber with `options`, which another fiber starts at `deadline`. The
// characters of the name must stay valid until then.
// Context, Throws: as for go(). If the later start throws, the exception counts as a detached
// fiber's.
template <std::invocable F>
DelayedCall call_at(const SpawnOptions& options, Deadline deadline, F&& callable) {
  return call_at(deadline, [options, late = std::decay_t<F>(std::forward<F>(callable))]() mutable {
    go(options, std::move(late));
  });
}
// Makes the call `duration` from now.
// Context, Throws: whatever call_at() with options throws.
template <class Rep, class Period, std::invocable F>
DelayedCall call_after(const SpawnOptions& options, std::chrono::duration<Rep, Period> duration,
                       F&& callable) {
  return call_at(options, Deadline::after(duration), std::forward<F>(callable));
}

// The overloads below exist only for their error messages.
template <class F>
requires(!std::invocable<F>) DelayedCall call_at(Deadline, F&&) {
  static_assert(detail::kFits<F>, "weft::call_at: the callable must take no arguments");
  return {};
}
template <class F>
requires(!std::invocable<F>) DelayedCall call_at(const SpawnOptions&, Deadline, F&&) {
  static_assert(detail::kFits<F>, "weft::call_at: the callable must take no arguments");
  return {};
}
template <class Rep, class Period, class F>
requires(!std::invocable<F>) DelayedCall
    call_after(const SpawnOptions&, std::chrono::duration<Rep, Period>, F&&) {
  static_assert(detail::kFits<F>, "weft::call_after: the callable must take no arguments");
  return {};
}
template <class Rep, class Period, class F>
requires(!std::invocable<F>) DelayedCall call_after(std::chrono::duration<Rep, Period>, F&&) {
  static_assert(detail::kFits<F>, "weft::call_after: the callable must take no arguments");
  return {};
}

}  // namespace weft

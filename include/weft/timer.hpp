// Provides timers that callers can wait for, change and stop.
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

// Holds the time at which a Timer expires or a Ticker ticks next. No code runs at that time unless
// a caller is waiting: each waiter has its own timer, and other callers read the clock. A timer
// without waiters therefore costs nothing, and a change of the time requires no cleanup.
// Invariant: waiters_ contains all waiters; set(), which may make due_ earlier, wakes all of them.
class ClockSource {
 public:
  ClockSource(Deadline due, std::chrono::nanoseconds period) noexcept
      : due_(due), period_(period) {}
  ClockSource(const ClockSource&) = delete;
  ClockSource& operator=(const ClockSource&) = delete;

  [[nodiscard]] bool try_wait() noexcept;
  [[nodiscard]] bool wait_until(const Until& until) noexcept;
  // Returns true if a time was set before. After a wait for an expired Timer, no time is set.
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
  bool conclude() noexcept override { return false; }  // The wake came from set(), not from expiry.

  ClockSource& source_;
  Handler handler_;
};

}  // namespace detail

// Works like Go's time.Timer: it expires once, at a time that can be changed or withdrawn. Each
// expiry ends one wait. After stop() or reset() has returned, the old time no longer ends a wait.
// Context: fibers and plain threads; wait() and wait_until() park.
// Lifetime: the object may be destroyed once no caller is waiting.
class Timer {
 public:
  // Makes a timer that is not set, or that is set to a deadline.
  Timer() noexcept : Timer(Deadline::never()) {}
  explicit Timer(Deadline deadline) noexcept : clock_(deadline, {}) {}
  template <class Rep, class Period>
  explicit Timer(std::chrono::duration<Rep, Period> duration) noexcept
      : Timer(Deadline::after(duration)) {}

  // Parks until the timer has expired, and unsets it. A timer that is not set never expires.
  void wait() noexcept { (void)wait_until({}); }
  // Waits as wait() does; returns false if `until` ended the wait.
  [[nodiscard]] bool wait_until(const Until& until) noexcept { return clock_.wait_until(until); }
  // Unsets the timer and returns true if the timer has expired; returns false otherwise.
  [[nodiscard]] bool try_wait() noexcept { return clock_.try_wait(); }

  // Unsets the timer; waiters keep waiting. Returns whether the timer was set.
  bool stop() noexcept { return clock_.set(Deadline::never(), {}); }
  // Sets a new time. Returns what stop() would have returned.
  bool reset(Deadline deadline) noexcept { return clock_.set(deadline, {}); }
  template <class Rep, class Period>
  bool reset(std::chrono::duration<Rep, Period> duration) noexcept {
    return reset(Deadline::after(duration));
  }

  // Returns the clock on which a select waits.
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
  // Throws: std::invalid_argument if `period` is not above 0.
  template <class Rep, class Period>
  explicit Ticker(std::chrono::duration<Rep, Period> period)
      : Ticker(Checked{detail::saturated_nanoseconds(period)}) {}

  // Parks until the next tick; after stop(), no tick comes before the next reset().
  void wait() noexcept { (void)wait_until({}); }
  // Waits as wait() does; returns false, and takes no tick, if `until` ended the wait.
  [[nodiscard]] bool wait_until(const Until& until) noexcept { return clock_.wait_until(until); }
  // Takes the tick that is due; returns false if no tick is due.
  [[nodiscard]] bool try_wait() noexcept { return clock_.try_wait(); }

  // Stops the ticks until the next reset().
  void stop() noexcept { (void)clock_.set(Deadline::never(), {}); }
  // Sets the next tick to one period from now.
  // Throws: as for the constructor.
  template <class Rep, class Period>
  void reset(std::chrono::duration<Rep, Period> period) {
    const Checked checked{detail::saturated_nanoseconds(period)};
    (void)clock_.set(Deadline::after(checked.period), checked.period);
  }

  // Returns the clock on which a select waits.
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
// Context, Throws: the same as for on_stop().
template <std::invocable Handler = detail::Nothing>
[[nodiscard]] auto on_expiry(Timer& timer, Handler handler = {}) {
  return detail::ClockCase<Handler>(timer.clock(), std::move(handler));
}
// Makes a select case that is ready at a tick; if the case is chosen, it takes the tick.
// Context, Throws: the same as for on_stop().
template <std::invocable Handler = detail::Nothing>
[[nodiscard]] auto on_tick(Ticker& ticker, Handler handler = {}) {
  return detail::ClockCase<Handler>(ticker.clock(), std::move(handler));
}

// Refers to a call that a timer makes in a new fiber, as Go's time.AfterFunc does. The destructor
// does not cancel the call. The call has no stack until it begins.
// Context: fibers and plain threads; does not park.
class DelayedCall {
 public:
  DelayedCall() noexcept = default;

  // Cancels the call. The call's fiber still starts, but only destroys the callable. Returns false
  // if there is no call, or if the call is already due or stopped.
  bool stop() noexcept { return alarm_ != nullptr && alarm_->cancel(); }

 private:
  template <std::invocable F>
  friend DelayedCall call_at(Deadline deadline, F&& callable);

  explicit DelayedCall(detail::Alarm* alarm) noexcept : alarm_(alarm) {}
  detail::AlarmHandle alarm_;
};

// At `deadline`, starts a detached fiber that runs `callable`. The destructor of a runtime waits
// for all pending calls that have not been stopped.
// Context, Throws: the same as for go().
template <std::invocable F>
DelayedCall call_at(Deadline deadline, F&& callable) {
  return DelayedCall(detail::set_alarm(deadline, detail::Task(std::forward<F>(callable))));
}
// Works like call_at(); the deadline is `duration` from now.
// Context, Throws: the same as for go().
template <class Rep, class Period, std::invocable F>
DelayedCall call_after(std::chrono::duration<Rep, Period> duration, F&& callable) {
  return call_at(Deadline::after(duration), std::forward<F>(callable));
}

// Works like call_at(), but the fiber started at `deadline` starts a second fiber with `options`,
// which runs `callable`. The text of `options.name` must stay valid until `callable` starts.
// Context, Throws: as for go(). If starting the second fiber throws, the exception is handled like
// one that leaves a detached fiber.
template <std::invocable F>
DelayedCall call_at(const SpawnOptions& options, Deadline deadline, F&& callable) {
  return call_at(deadline, [options, late = std::decay_t<F>(std::forward<F>(callable))]() mutable {
    go(options, std::move(late));
  });
}
// Works like call_at() with options; the deadline is `duration` from now.
// Context, Throws: the same as for call_at() with options.
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

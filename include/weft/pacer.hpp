// Enforces a minimum time between the starts of tasks.
#pragma once

#include <chrono>
#include <concepts>
#include <functional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <weft/detail/exceptions.hpp>
#include <weft/event.hpp>
#include <weft/semaphore.hpp>
#include <weft/this_fiber.hpp>

namespace weft {

// Lets callers through in FIFO order, each at least `spacing` after the previous caller; the first
// caller passes at once. Use a Pacer to space the starts of tasks in one or more pools:
//
//   Pacer pacer(100ms);
//   (void)pool.submit(pacer.pace([] { fetch(); }));
//
// Context: fibers and plain threads; next(), next_until() and next_for() park.
// Lifetime: a Pacer may be destroyed once every wait has returned.
class Pacer {
 public:
  // Makes a pacer with `spacing`, rounded up to nanoseconds.
  // Throws: std::invalid_argument if `spacing` is not above 0.
  template <class Rep, class Period>
  explicit Pacer(std::chrono::duration<Rep, Period> spacing)
      : spacing_(checked(detail::saturated_nanoseconds(spacing))) {
    open_.set();
  }
  Pacer(const Pacer&) = delete;
  Pacer& operator=(const Pacer&) = delete;

  // Parks until the caller may pass.
  void next() noexcept { (void)next_until({}); }
  // Waits as next() does. If `until` ends the wait, returns false; the next waiter may then pass
  // when this caller would have passed.
  [[nodiscard]] bool next_until(const Until& until) noexcept {
    if (!turn_.try_acquire_until(until)) return false;
    const Return returned{turn_};
    // Checks again, because the pacer may have been paused while the caller slept.
    do {
      if (!open_.wait_until(until) || !this_fiber::sleep_until(due_, until)) return false;
    } while (is_paused_hint());
    due_ = Deadline::after(spacing_);
    return true;
  }
  template <class Rep, class Period>
  [[nodiscard]] bool next_for(std::chrono::duration<Rep, Period> duration) noexcept {
    return next_until(Deadline::after(duration));
  }

  // Returns a callable that calls next() and then `callable`; the pacer must outlive the result. In
  // a pool, the wait in next() occupies a slot; to avoid this, call next() before submit().
  // Throws: whatever the move constructor of `F` throws.
  template <std::invocable F>
  [[nodiscard]] auto pace(F callable) {
    return [this, callable = std::move(callable)]() mutable -> std::invoke_result_t<F&> {
      next();
      return std::invoke(callable);
    };
  }

  // Lets no caller through until resume(). The time in the pause counts toward the spacing.
  void pause() noexcept { open_.reset(); }
  // Ends a pause; waiters then pass one by one, at least `spacing` apart.
  void resume() noexcept { open_.set(); }
  // Returns whether the pacer is paused; the result may be stale.
  [[nodiscard]] bool is_paused_hint() const noexcept { return !open_.is_set_hint(); }

 private:
  struct Return {
    Semaphore& turn;
    ~Return() { turn.release(); }
  };

  static std::chrono::nanoseconds checked(std::chrono::nanoseconds spacing) {
    if (spacing.count() > 0) return spacing;
    WEFT_THROW(std::invalid_argument("weft::Pacer: spacing = " + std::to_string(spacing.count()) +
                                     " ns; must be above 0"));
  }

  const std::chrono::nanoseconds spacing_;
  Event open_;
  Semaphore turn_{1};
  Deadline due_ = Deadline::past();  // The time at which the caller that holds turn_ may pass.
};

}  // namespace weft

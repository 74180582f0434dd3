// Keeps starts apart.
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

// Lets one caller through at a time, first come, first served, and the next one no earlier than
// `spacing` after it; the first one at once. For what must not be started in bursts, in one pool or
// in several:
//
//   Pacer pacer(100ms);
//   (void)pool.submit(pacer.pace([] { fetch(); }));
//
// All calls from fibers and plain threads, any number of callers at once. It may be destroyed once
// every wait has returned. Calls park, throw and synchronize where they say so.
class Pacer {
 public:
  // `spacing` is rounded up to nanoseconds. Throws std::invalid_argument unless it is above 0.
  template <class Rep, class Period>
  explicit Pacer(std::chrono::duration<Rep, Period> spacing)
      : spacing_(checked(detail::saturated_nanoseconds(spacing))) {
    open_.set();
  }
  Pacer(const Pacer&) = delete;
  Pacer& operator=(const Pacer&) = delete;

  // Parks until it is the caller's turn.
  void next() noexcept { (void)next_until({}); }
  // Returns false when `until` ended the wait; the next waiter has the turn then.
  [[nodiscard]] bool next_until(const Until& until) noexcept {
    if (!turn_.try_acquire_until(until)) return false;
    const Return returned{turn_};
    // Again, because it may be paused while the caller sleeps.
    do {
      if (!open_.wait_until(until) || !this_fiber::sleep_until(due_, until)) return false;
    } while (is_paused());
    due_ = Deadline::after(spacing_);
    return true;
  }
  // Waits as next_until() does, for at most `duration`.
  template <class Rep, class Period>
  [[nodiscard]] bool next_for(std::chrono::duration<Rep, Period> duration) noexcept {
    return next_until(Deadline::after(duration));
  }

  // A callable that waits for its turn and then calls `callable`. In a pool it holds a slot while
  // it waits: call next() before the submit instead where that hurts. The pacer must outlive it.
  template <std::invocable F>
  [[nodiscard]] auto pace(F callable) {
    return [this, callable = std::move(callable)]() mutable -> std::invoke_result_t<F&> {
      next();
      return std::invoke(callable);
    };
  }

  // Lets no caller through from now on, until resume(); time passes meanwhile. Never parks.
  void pause() noexcept { open_.reset(); }
  // Ends a pause: waiters go on, at the pace. Never parks.
  void resume() noexcept { open_.set(); }
  // Returns whether a pause lasts; may be stale when it returns. Never parks.
  [[nodiscard]] bool is_paused() const noexcept { return !open_.is_set_hint(); }

 private:
  struct Return {
    Semaphore& turn;
    ~Return() { turn.release(); }
  };

  static std::chrono::nanoseconds checked(std::chrono::nanoseconds spacing) {
    if (spacing.count() > 0) return spacing;
    WEFT_THROW(std::invalid_argument("weft::Pacer: spacing = " + std::to_string(spacing.count()) +
                                     " ns, must be above 0"));
  }

  const std::chrono::nanoseconds spacing_;
  Event open_;
  Semaphore turn_{1};
  Deadline due_ = Deadline::past();  // Of who has the turn.
};

}  // namespace weft

// An event that callers wait for.
#pragma once

#include <weft/detail/late_wait.hpp>
#include <weft/detail/waiter.hpp>

namespace weft {

// A manual-reset event. set() releases all current waiters, even if reset() runs before they do. A
// wait always takes the lock, so it cannot return while set() is using the event (see Lifetime).
// Context: fibers and plain threads; wait(), wait_until() and wait_for() park.
// Ordering: set() synchronizes with each wait that it wakes or that finds the event set.
// Lifetime: the event may be destroyed once every wait has succeeded, even before set() returns.
// Order
//   [set]  set() stores set_ (release) -> is_set_hint() loads true (acquire): its caller then sees
//          all writes that were made before set().
class Event {
 public:
  Event() noexcept = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // Sets the event and wakes all waiters. Has no effect if the event is already set.
  void set() noexcept;
  // Resets the event, so that later waits park.
  void reset() noexcept;
  // Parks until the event is set.
  void wait() noexcept {
    WEFT_TELL_LATE_WAIT(event, wait_until(Deadline::past()));
    (void)wait_until({});
  }
  // Waits as wait() does; returns false if `until` ended the wait.
  [[nodiscard]] bool wait_until(const Until& until) noexcept;
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> duration) noexcept {
    return wait_until(Deadline::after(duration));
  }
  // Returns whether the event is set; may be stale. If true, all writes before set() are visible.
  [[nodiscard]] bool is_set_hint() const noexcept { return set_.load(detail::acquire); }  // [set]

 private:
  detail::Atomic<bool> set_{false};  // Written under lock_, but read without a lock.
  detail::SpinLock lock_;
  detail::WaitList waiters_ WEFT_GUARDED_BY(lock_);
};

}  // namespace weft

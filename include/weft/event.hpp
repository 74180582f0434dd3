// Something that has happened, or not yet.
#pragma once

#include <weft/detail/waiter.hpp>

namespace weft {

// A manual-reset event for fibers and plain threads: open while it is set. Callers that wait when
// it is set go on, even if it is reset before they run.
// set() synchronizes with the return of each wait that it ends, or that finds it set.
// It may be destroyed once every wait has returned; the set() that ended it may be still on its way
// out. (That is why a wait takes the lock, also when the event is set.)
// Order
//   [set]  set stores set_ (release) -> is_set_hint loads it (acquire).
class Event {
 public:
  Event() noexcept = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // Wakes all who wait. Setting what is set does nothing. Never parks.
  void set() noexcept;
  // Callers that come from now on wait. Never parks.
  void reset() noexcept;
  // Parks until the event is set.
  void wait() noexcept { (void)wait_until({}); }
  // Returns false when `until` ended the wait.
  [[nodiscard]] bool wait_until(const Until& until) noexcept;
  // Waits as wait_until() does, for at most `duration`.
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> duration) noexcept {
    return wait_until(Deadline::after(duration));
  }
  // May be stale when it returns; if true, what came before the set() is visible. Never parks.
  [[nodiscard]] bool is_set_hint() const noexcept { return set_.load(detail::acquire); }  // [set]

 private:
  detail::Atomic<bool> set_{false};  // Written under the lock.
  detail::SpinLock lock_;
  detail::WaitList waiters_ WEFT_GUARDED_BY(lock_);
};

}  // namespace weft

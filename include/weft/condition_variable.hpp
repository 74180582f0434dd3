// Waits for a condition that a lock protects.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>
#include <weft/detail/late_wait.hpp>
#include <weft/detail/waiter.hpp>
#include <weft/mutex.hpp>

namespace weft {

// Works like std::condition_variable_any. `Lock` is any type with lock() and unlock(), such as
// std::unique_lock<Mutex> or a SharedMutex's std::shared_lock. There are no spurious wakeups, but
// the condition may change again before the lock is reacquired. The user's lock() and unlock() may
// park and use the condition variable, because it holds no internal lock during these calls.
// Context: fibers and plain threads; the waits park, but the notify calls do not.
// Throws: whatever the lock, the condition and moves of the condition throw.
// Ordering: a notification does not synchronize; the lock orders accesses to the condition.
// Lifetime: it may be destroyed once each wait has been notified, or has returned at its limit.
// Fairness: FIFO.
class ConditionVariable {
 public:
  ConditionVariable() noexcept = default;
  ConditionVariable(const ConditionVariable&) = delete;
  ConditionVariable& operator=(const ConditionVariable&) = delete;

  // Wakes the waiter that has waited longest. The caller may hold the lock, but need not hold it.
  void notify_one() noexcept;
  // Wakes all current waiters.
  void notify_all() noexcept;

  // Unlocks `lock`, parks until notified, and locks `lock` again. `lock` must be locked. A
  // notification may end the wait even before lock.unlock() is called. If unlock() throws, the call
  // does not wait.
  template <class Lock>
  void wait(Lock& lock) {
    WEFT_TELL_LATE_WAIT(condition_variable, false);
    (void)wait_until(lock, Until());
  }
  template <class Lock, class Predicate>
  void wait(Lock& lock, Predicate condition) {
    while (!condition()) wait(lock);
  }
  // Waits until `condition` holds or a stop is requested, and returns the value of `condition`.
  template <class Lock, class Predicate>
  bool wait(Lock& lock, const std::stop_token& token, Predicate condition) {
    return wait_until(lock, Until(token), std::move(condition));
  }
  // Waits as wait() does. Returns std::cv_status::timeout if `until` ended the wait; `lock` is
  // locked again in either case.
  template <class Lock>
  std::cv_status wait_until(Lock& lock, const Until& until) {
    if constexpr (requires { lock.owns_lock(); }) check_locked(lock.owns_lock());
    // The wait is in the list before the unlock, so a notifier that locks afterwards finds it.
    Wait wait(*this, until);
    lock.unlock();
    const std::cv_status status = wait.park();
    lock.lock();
    return status;
  }
  template <class Lock, class Predicate>
  bool wait_until(Lock& lock, const Until& until, Predicate condition) {
    while (!condition()) {
      if (wait_until(lock, until) == std::cv_status::timeout) return condition();
    }
    return true;
  }
  template <class Lock, class Rep, class Period>
  std::cv_status wait_for(Lock& lock, std::chrono::duration<Rep, Period> duration) {
    return wait_until(lock, Deadline::after(duration));
  }
  template <class Lock, class Rep, class Period, class Predicate>
  bool wait_for(Lock& lock, std::chrono::duration<Rep, Period> duration, Predicate condition) {
    return wait_until(lock, Deadline::after(duration), std::move(condition));
  }

 private:
  // One wait, which is added to the list before its caller parks. A notifier may therefore find it
  // during lock.unlock(). The notifier and the waiter synchronize through handover_: the second to
  // lock it sees the other's writes. The waiter holds it until its registers are saved.
  class Wait : detail::Waiter {
   public:
    Wait(ConditionVariable& condition, const Until& until) noexcept;
    // Withdraws the wait if the caller did not reach park(). If a notification has already reached
    // this wait, passes it on to another waiter.
    ~Wait();
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

    // Parks until the wait ends, unless the wait was already notified. May be called at most once.
    std::cv_status park() noexcept;
    // Only the notifier that has removed the wait from the list calls this function, with no lock
    // held. Once handover_ is unlocked, a caller that is not parked may destroy the wait.
    void notify() noexcept;

    // Returns the Wait whose base is `waiter`.
    [[nodiscard]] static Wait& of(detail::Waiter& waiter) noexcept {
      return static_cast<Wait&>(waiter);
    }

   private:
    ConditionVariable& condition_;
    std::optional<detail::BoundedPark> bounded_;
    detail::SpinLock handover_;
    bool is_parked_ WEFT_GUARDED_BY(handover_) = false;
    bool is_notified_ WEFT_GUARDED_BY(handover_) = false;
    bool has_ended_ = false;  // Only the waiting caller uses it.
  };

  void check_locked(bool locked) const noexcept;

  detail::SpinLock waiters_lock_;
  detail::WaitList waiters_ WEFT_GUARDED_BY(waiters_lock_);
};

}  // namespace weft

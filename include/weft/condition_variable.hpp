// Waiting for a condition that a lock guards.
#pragma once

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>
#include <weft/mutex.hpp>

namespace weft {

// std::condition_variable_any for fibers and plain threads: `Lock` is anything with lock() and
// unlock(), such as std::unique_lock<Mutex> or a SharedMutex's std::shared_lock. First come, first
// notified; no spurious wake-ups, though the condition may have been changed again before the lock
// is reacquired. It may be destroyed once all waiters have been notified.
// A notify synchronizes with nothing by itself: the lock orders the condition.
class ConditionVariable {
 public:
  ConditionVariable() noexcept = default;
  ConditionVariable(const ConditionVariable&) = delete;
  ConditionVariable& operator=(const ConditionVariable&) = delete;

  // Never park. From fibers and plain threads, with the lock held or not.
  void notify_one() noexcept;
  void notify_all() noexcept;

  // Unlocks, parks until notified, locks again. `lock` must be locked; its unlock() must not use
  // this condition variable.
  template <class Lock>
  void wait(Lock& lock) {
    (void)wait_until(lock, Until());
  }
  template <class Lock, class Predicate>
  void wait(Lock& lock, Predicate condition) {
    while (!condition()) wait(lock);
  }
  // As std::condition_variable_any: the condition's value, which is false only if a stop was
  // requested.
  template <class Lock, class Predicate>
  bool wait(Lock& lock, const std::stop_token& token, Predicate condition) {
    return wait_until(lock, Until(token), std::move(condition));
  }
  // std::cv_status::timeout when `until` ended the wait; the lock is locked either way.
  template <class Lock>
  std::cv_status wait_until(Lock& lock, const Until& until) {
    if constexpr (requires { lock.owns_lock(); }) check_locked(lock.owns_lock());
    // The lock is given up while the list is locked: a notifier that then takes it and notifies
    // comes to the list after this waiter.
    waiters_lock_.lock();
    lock.unlock();
    const std::cv_status status = wait_listed(until);
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
  static void check_locked(bool locked) noexcept;
  // waiters_lock_ is held, and is released.
  std::cv_status wait_listed(const Until& until) noexcept;

  detail::SpinLock waiters_lock_;
  detail::WaitList waiters_;
};

}  // namespace weft

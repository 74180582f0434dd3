// Waiting for a condition that a mutex guards.
#pragma once

#include <condition_variable>
#include <mutex>
#include <weft/mutex.hpp>

namespace weft {

// std::condition_variable for fibers and plain threads. First come, first notified; no spurious
// wake-ups, though the condition may have been changed again before the mutex is reacquired.
// It may be destroyed once all waiters have been notified.
class ConditionVariable {
 public:
  ConditionVariable() noexcept = default;
  ConditionVariable(const ConditionVariable&) = delete;
  ConditionVariable& operator=(const ConditionVariable&) = delete;

  void notify_one() noexcept;
  void notify_all() noexcept;

  // Unlocks, parks until notified, locks again. `lock` must be locked.
  void wait(std::unique_lock<Mutex>& lock) noexcept;
  template <class Predicate>
  void wait(std::unique_lock<Mutex>& lock, Predicate condition) {
    while (!condition()) wait(lock);
  }
  // std::cv_status::timeout when the time was up first; the mutex is locked either way.
  std::cv_status wait_until(std::unique_lock<Mutex>& lock, Deadline deadline) noexcept;
  template <class Predicate>
  bool wait_until(std::unique_lock<Mutex>& lock, Deadline deadline, Predicate condition) {
    while (!condition()) {
      if (wait_until(lock, deadline) == std::cv_status::timeout) return condition();
    }
    return true;
  }
  template <class Rep, class Period>
  std::cv_status wait_for(std::unique_lock<Mutex>& lock,
                          std::chrono::duration<Rep, Period> duration) noexcept {
    return wait_until(lock, Deadline::after(duration));
  }
  template <class Rep, class Period, class Predicate>
  bool wait_for(std::unique_lock<Mutex>& lock, std::chrono::duration<Rep, Period> duration,
                Predicate condition) {
    return wait_until(lock, Deadline::after(duration), std::move(condition));
  }

 private:
  detail::SpinLock waiters_lock_;
  detail::WaitList waiters_;
};

}  // namespace weft

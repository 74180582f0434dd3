// Mutual exclusion between fibers.
#pragma once

#include <weft/detail/thread_annotations.hpp>
#include <weft/detail/waiter.hpp>

namespace weft {

// A mutex that parks a waiting fiber instead of blocking its thread. It meets the TimedLockable
// requirements, so std::unique_lock and std::scoped_lock work. It is not recursive. A fiber may
// lock it on one thread and unlock it on another thread.
// Context: fibers and plain threads; lock(), try_lock_until() and try_lock_for() park.
// Ordering: unlock() synchronizes with the next lock().
// Lifetime: the caller that has locked and unlocked the mutex last may destroy it.
// Fairness: a running caller may overtake a waiter once; the next unlock() then passes the mutex to
// that waiter.
// Invariants
//   I1  The mutex has no owner if and only if state_ is 0 or has kOpen set. With an owner, state_
//       is kLocked, with or without kWaiters; within unlock() it may be kWaiters alone.
//   I2  Under waiters_lock_, kWaiters is set whenever the list is not empty. It may stay set after
//       the list has become empty; the next unlock then checks the list.
//   I3  The caller that has locked and unlocked the mutex last may destroy the mutex. An unlock()
//       that has freed the mutex, and wakes no waiter, does not access it any more. Unchecked: the
//       absence of an access cannot be observed.
//   I4  While locks record their owners, each caller that becomes the owner records itself in
//       owner_, under waiters_lock_. So while a waiter is in the list, owner_ is the owner.
//       Unchecked: only a reader of the process's memory sees both the list and owner_.
// So an unlock() is one subtraction without a prior check: if there are waiters, only kWaiters
// remains, and the mutex still belongs to the caller. A plain store that frees the mutex, followed
// by a check for waiters, would be cheaper still, but that check might come after the mutex's
// destruction.
// Order
//   [mutex]  unlock subtracts kLocked, or sets kOpen (release) -> lock sets kLocked (acquire).
class WEFT_LOCK("mutex") Mutex {
 public:
  Mutex() noexcept = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  // Parks until the caller owns the mutex.
  void lock() noexcept WEFT_ACQUIRES() WEFT_NOT_ANALYZED {
    if (detail::is_turn_over()) [[unlikely]]
      return give_way_and_lock();
    std::uint32_t expected = 0;
    if (!state_.compare_exchange_strong(expected, kLocked, detail::acquire,  // [mutex]
                                        detail::relaxed)) [[unlikely]] {
      lock_contended();
    }
  }
  // Locks the mutex if it is free; returns false otherwise.
  [[nodiscard]] bool try_lock() noexcept
      WEFT_TRY_ACQUIRES(true) WEFT_NOT_ANALYZED;  // Not analyzed: it implements the lock.
  // Waits as lock() does; returns false if `until` ended the wait.
  [[nodiscard]] bool try_lock_until(const Until& until) noexcept
      WEFT_TRY_ACQUIRES(true) WEFT_NOT_ANALYZED;  // Not analyzed: as try_lock().
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> duration) noexcept
      WEFT_TRY_ACQUIRES(true) {
    return try_lock_until(Deadline::after(duration));
  }
  // Unlocks the caller's mutex. Unlocking a free mutex ends the process with a report.
  void unlock() noexcept WEFT_RELEASES() {
    // In this form, compilers test the subtraction's flags, which is faster than an exchange.
    if (state_.fetch_sub(kLocked, detail::release) - kLocked != 0) [[unlikely]] {  // [mutex]
      unlock_contended();
    }
  }

 private:
  static constexpr std::uint32_t kLocked = 1;
  static constexpr std::uint32_t kWaiters = 2;
  static constexpr std::uint32_t kOpen = 4;  // The mutex is free, even if kWaiters is set.

  [[nodiscard]] static bool is_free(std::uint32_t state) noexcept {
    return state == 0 || (state & kOpen) != 0;
  }
  void give_way_and_lock() noexcept;
  void lock_contended() noexcept;
  [[nodiscard]] bool lock_contended_until(const Until& until) noexcept;
  // Returns true if the caller has locked the mutex.
  [[nodiscard]] bool spin() noexcept;
  [[nodiscard]] bool take_if_free() noexcept;
  void note_owner() noexcept WEFT_REQUIRES(waiters_lock_);
  [[nodiscard]] bool lock_or_announce() noexcept WEFT_REQUIRES(waiters_lock_);
  [[nodiscard]] bool wait_for_turn(detail::Waiter& self, bool overtaken,
                                   const Until& until) noexcept WEFT_RELEASES(waiters_lock_);
  void unlock_contended() noexcept;
  void hand_to(detail::Waiter& next) noexcept WEFT_RELEASES(waiters_lock_);

  detail::Atomic<std::uint32_t> state_{0};
  detail::SpinLock waiters_lock_;
  detail::LockOwner owner_ WEFT_GUARDED_BY(waiters_lock_);
  detail::WaitList waiters_ WEFT_GUARDED_BY(waiters_lock_);
};

}  // namespace weft

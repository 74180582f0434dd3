// Mutual exclusion between fibers.
#pragma once

#include <weft/detail/thread_annotations.hpp>
#include <weft/detail/waiter.hpp>

namespace weft {

// A mutex that parks a waiting fiber instead of blocking its thread. It meets the TimedLockable
// requirements, so std::unique_lock and std::scoped_lock work. It is not recursive. A fiber may
// lock it on one thread and unlock it on another thread.
// Context: fibers and plain threads; lock(), try_lock_until() and try_lock_for() park.
// Ordering: unlock() synchronizes with the next call that locks the mutex.
// Lifetime: the last caller to lock and unlock the mutex may destroy it.
// Fairness: waiters are woken in FIFO order. Running callers may take a free mutex first. A woken
// waiter that finds it locked rejoins at the queue's head; a later unlock() hands it the mutex.
// Invariants
//   I1  The mutex has no owner if and only if state_ is 0 or has kOpen set. While it has an owner,
//       state_ is kLocked, with or without kWaiters; in unlock(), state_ may be kWaiters alone.
//   I2  Under waiters_lock_, kWaiters is set whenever the list is not empty. The flag may stay set
//       after the list has become empty; the next unlock() then checks the list.
//   I3  The last caller to lock and unlock the mutex may destroy the mutex. After an unlock() has
//       freed the mutex without waking a waiter, it does not access the mutex again. Not asserted,
//       because no assertion can detect that an access does not occur.
//   I4  While base::notes_lock_owners() is true, each new owner stores its number in owner_, under
//       waiters_lock_. While a waiter is in the list, owner_ is the owner's number, or 0 if a new
//       owner has not stored it yet. Not asserted, because a wrong owner_ affects only reports.
// An unlock() subtracts kLocked without a check for waiters. If there are waiters, state_ is then
// kWaiters, and the mutex still belongs to the caller. It would be cheaper to free the mutex with a
// store and then check for waiters, but the mutex might be destroyed before the check.
// Order
//   [mutex]  unlock() makes the mutex free (release) -> lock() sets kLocked (acquire):
//            the new owner then sees all writes of earlier owners.
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
      WEFT_TRY_ACQUIRES(true) WEFT_NOT_ANALYZED;  // Not analyzed: it implements the lock.
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> duration) noexcept
      WEFT_TRY_ACQUIRES(true) {
    return try_lock_until(Deadline::after(duration));
  }
  // Unlocks the mutex, which the caller must own. If it is free, the process ends with a report.
  void unlock() noexcept WEFT_RELEASES() {
    // A subtraction is faster than an exchange, because it sets the CPU flags that `if` tests.
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
  // Waits briefly; returns true if it has locked the mutex.
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

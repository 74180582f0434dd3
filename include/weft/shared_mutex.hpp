// Provides a lock for one writer or many readers.
#pragma once

#include <chrono>
#include <cstdint>
#include <weft/detail/waiter.hpp>

namespace weft {

// Works like std::shared_timed_mutex: one writer or any number of readers own it. std::scoped_lock
// works; std::unique_lock and std::shared_lock also work with ConditionVariable. The mutex is not
// recursive: a reader that locks again deadlocks if a writer has begun to wait in between. An owner
// may lock on one thread and unlock on another.
// Context: fibers and plain threads; lock(), lock_shared() and the _until and _for forms park.
// Ordering: an unlock synchronizes with each later lock, unless both are for reading.
// Lifetime: the caller that unlocks the mutex last may destroy it once all other lock calls have
// returned. Earlier unlock calls need not have returned.
// Fairness: FIFO, also for readers. An unlock passes the mutex to waiters, so no caller overtakes a
// waiter. Readers that are adjacent in the queue get the mutex together.
// Invariants
//   I1  state_ is the sum of kWriter or kReader for each owner, plus the flags kWaiters and kNoted.
//   I2  kWaiters is set whenever the list is not empty, and only while the mutex has an owner.
//       kWaiters changes under waiters_lock_ only.
//   I3  While kWaiters is set, only code that holds waiters_lock_ makes a caller an owner, or
//       removes the last owner.
//   I4  After an unlock has freed the mutex without waking a waiter, it does not access the mutex
//       again. Not asserted, because the absence of an access cannot be observed.
//   I5  An owner sets kNoted before it is recorded in base::shared_owners, and no unlock takes the
//       fast path while kNoted is set. Each recorded owner thus unlocks on the slow path, which
//       removes its record. The last owner clears kNoted. Not asserted, because the records are in
//       base::shared_owners, so this class cannot check them.
// Order
//   [shared]  an unlock changes state_ (release) -> a lock changes it, or unlock_contended() loads
//             it for the next owner (acquire): the new owner sees all effects of earlier owners.
class SharedMutex {
 public:
  SharedMutex() noexcept = default;
  SharedMutex(const SharedMutex&) = delete;
  SharedMutex& operator=(const SharedMutex&) = delete;

  // Parks until the caller is the only owner.
  void lock() noexcept {
    if (detail::is_turn_over()) [[unlikely]]
      return give_way_and_lock(kWriter);
    if (!take(kWriter)) [[unlikely]]
      (void)lock_contended(kWriter, {});
  }
  // Locks for writing if the mutex is free; returns false otherwise.
  [[nodiscard]] bool try_lock() noexcept {
    if (detail::is_turn_over()) [[unlikely]]
      return take_and_note(kWriter);
    return take(kWriter);
  }
  // Waits as lock() does; returns false if `until` ended the wait. Readers that were waiting only
  // because of this call then get the mutex.
  [[nodiscard]] bool try_lock_until(const Until& until) noexcept {
    detail::give_way_if_due();
    return try_lock() || lock_contended(kWriter, until);
  }
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> duration) noexcept {
    return try_lock_until(Deadline::after(duration));
  }
  // Ends the writer's ownership. If there is no writer, the process ends with a report.
  void unlock() noexcept {
    if (!leave(kWriter)) [[unlikely]]
      unlock_contended(kWriter);
  }

  // Parks until the caller owns the mutex as a reader.
  void lock_shared() noexcept {
    if (detail::is_turn_over()) [[unlikely]]
      return give_way_and_lock(kReader);
    if (!take(kReader)) [[unlikely]]
      (void)lock_contended(kReader, {});
  }
  // Locks for reading without waiting. Returns false if there is a writer or a waiter.
  [[nodiscard]] bool try_lock_shared() noexcept {
    if (detail::is_turn_over()) [[unlikely]]
      return take_and_note(kReader);
    return take(kReader);
  }
  // Waits as lock_shared() does; returns false if `until` ended the wait.
  [[nodiscard]] bool try_lock_shared_until(const Until& until) noexcept {
    detail::give_way_if_due();
    return try_lock_shared() || lock_contended(kReader, until);
  }
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_shared_for(std::chrono::duration<Rep, Period> duration) noexcept {
    return try_lock_shared_until(Deadline::after(duration));
  }
  // Ends the caller's ownership as a reader. If there is no reader, the process ends with a report.
  void unlock_shared() noexcept {
    if (!leave(kReader)) [[unlikely]]
      unlock_contended(kReader);
  }

 private:
  // Each owner adds kReader or kWriter to the state.
  static constexpr std::uint32_t kWriter = 1;
  static constexpr std::uint32_t kWaiters = 2;
  static constexpr std::uint32_t kReader = 4;
  // Set while an owner is recorded for deadlock reports. may_leave() uses it as a sign bit.
  static constexpr std::uint32_t kNoted = 1U << 31;

  // `state` must not have the bit kNoted.
  [[nodiscard]] static bool is_owned_by(std::uint32_t state, std::uint32_t owner) noexcept {
    return owner == kWriter ? (state & kWriter) != 0 : state >= kReader;
  }
  // Returns whether an unlock may take the fast path, on which it passes the mutex to no waiter and
  // removes no record.
  [[nodiscard]] static bool may_leave(std::uint32_t state, std::uint32_t owner) noexcept {
    if (owner == kWriter) return state == kWriter;
    return static_cast<std::int32_t>(state) >= static_cast<std::int32_t>(kReader) &&
           state != (kReader | kWaiters);
  }
  // Makes the caller an owner if the caller need not wait. Relaxed loads of state_, here and in
  // leave(), are only preliminary, because a compare-exchange checks the value again.
  [[nodiscard]] bool take(std::uint32_t owner) noexcept {
    const std::uint32_t obstacles = owner == kWriter ? ~0U : kWriter | kWaiters;
    std::uint32_t state = owner == kWriter ? 0 : state_.load(detail::relaxed);
    while ((state & obstacles) == 0) {
      if (state_.compare_exchange_weak(state, state + owner, detail::acquire,  // [shared]
                                       detail::relaxed)) {
        return true;
      }
    }
    return false;
  }
  // Ends an ownership. Fails if a waiter must get the mutex, an owner is recorded, or none exists.
  [[nodiscard]] bool leave(std::uint32_t owner) noexcept {
    std::uint32_t state = state_.load(detail::relaxed);
    while (may_leave(state, owner)) {
      if (state_.compare_exchange_weak(state, state - owner, detail::release,  // [shared]
                                       detail::relaxed)) {
        return true;
      }
    }
    return false;
  }

  void give_way_and_lock(std::uint32_t owner) noexcept;
  [[nodiscard]] bool take_and_note(std::uint32_t owner) noexcept;
  void note_owner() noexcept;
  [[nodiscard]] bool lock_contended(std::uint32_t owner, const Until& until) noexcept;
  [[nodiscard]] bool leave_contended(std::uint32_t owner) noexcept;
  void unlock_contended(std::uint32_t owner) noexcept;
  [[nodiscard]] bool hand_over() noexcept WEFT_RELEASES(waiters_lock_);
  void let_in_after_withdrawal() noexcept;
  [[nodiscard]] detail::Waiter* admit(std::uint32_t& owners) noexcept WEFT_REQUIRES(waiters_lock_);

  detail::Atomic<std::uint32_t> state_{0};
  detail::SpinLock waiters_lock_;
  detail::WaitList waiters_ WEFT_GUARDED_BY(waiters_lock_);
};

}  // namespace weft

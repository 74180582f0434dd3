// Implements FIFO wait queues.
#pragma once

#include <cstddef>
#include <cstdint>
#include <weft/detail/bounded_park.hpp>
#include <weft/detail/lock_owner.hpp>
#include <weft/detail/spin_lock.hpp>
#include <weft/detail/turn.hpp>
#include <weft/detail/waist.hpp>
#include <weft/until.hpp>

namespace weft::detail {

// Represents one wait. It is usually on the stack of the waiting caller; the list's lock guards it.
// Not annotated, because the lock analysis would need the list's lock in each Waiter.
struct Waiter {
  Waiter* next = nullptr;
  Waiter* previous = nullptr;
  Waker waker;
  // If null, only the thread that removes the waiter from the list can end this wait.
  Claim* claim = nullptr;
  void* slot = nullptr;      // The address to which a primitive transfers a value, if any.
  std::uint64_t amount = 0;  // The requested amount, such as a number of permits.
  bool linked = false;
  bool claimed = false;  // True after a notifier has ended the wait and removed the waiter.
  bool granted = false;  // True if the notifier has granted the waiter's request.
};

// A FIFO list of waiters. The lock of the list's owner guards the list.
// Invariant: a waiter's `linked` is true if and only if the waiter is in the list.
class WaitList {
 public:
  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  [[nodiscard]] Waiter* front() noexcept { return first_; }

  void push_back(Waiter& waiter) noexcept {
    waiter.linked = true;
    waiter.next = nullptr;
    waiter.previous = last_;
    (last_ == nullptr ? first_ : last_->next) = &waiter;
    last_ = &waiter;
  }
  void push_front(Waiter& waiter) noexcept {
    waiter.linked = true;
    waiter.previous = nullptr;
    waiter.next = first_;
    (first_ == nullptr ? last_ : first_->previous) = &waiter;
    first_ = &waiter;
  }
  // Inserts `waiter` before `next`, or at the end if `next` is null.
  void insert_before(Waiter* next, Waiter& waiter) noexcept {
    if (next == nullptr) return push_back(waiter);
    waiter.linked = true;
    waiter.next = next;
    waiter.previous = next->previous;
    (next->previous == nullptr ? first_ : next->previous->next) = &waiter;
    next->previous = &waiter;
  }
  void erase(Waiter& waiter) noexcept {
    (waiter.previous == nullptr ? first_ : waiter.previous->next) = waiter.next;
    (waiter.next == nullptr ? last_ : waiter.next->previous) = waiter.previous;
    waiter.linked = false;
  }

  void erase_if_linked(Waiter& waiter) noexcept {
    if (waiter.linked) erase(waiter);
  }

  // Removes the first waiter whose wait has not ended, and ends the wait; the caller must wake the
  // waiter. Waiters whose wait is already over are unlinked and skipped.
  [[nodiscard]] Waiter* claim_front() noexcept {
    while (first_ != nullptr) {
      Waiter& waiter = *first_;
      erase(waiter);
      if (try_claim(waiter)) return &waiter;
    }
    return nullptr;
  }
  // Ends the wait of a waiter that the caller has erased from the list. Returns false if the wait
  // is already over.
  [[nodiscard]] static bool try_claim(Waiter& waiter) noexcept {
    if (waiter.claim != nullptr && !waiter.claim->try_claim(Claim::kNotifier)) return false;
    waiter.claimed = true;
    return true;
  }
  // Returns whether there is a waiter whose wait has not ended; unlinks ended waiters at the front.
  [[nodiscard]] bool has_claimable() noexcept {
    while (first_ != nullptr) {
      if (first_->claim == nullptr || first_->claim->winner() == Claim::kNobody) return true;
      erase(*first_);
    }
    return false;
  }

  // Claims at most `most` waiters, and returns them as a chain through `next`, oldest first.
  [[nodiscard]] Waiter* claim_all(std::size_t most = SIZE_MAX) noexcept {
    Waiter* head = nullptr;
    Waiter** tail = &head;
    for (; most > 0; --most) {
      Waiter* waiter = claim_front();
      if (waiter == nullptr) break;
      *tail = waiter;
      tail = &waiter->next;
    }
    *tail = nullptr;
    return head;
  }

 private:
  Waiter* first_ = nullptr;
  Waiter* last_ = nullptr;
};

// Unlocks the lock that a caller held when it parked; runs as the `after` of park().
inline void unlock_handed_over(void* held) noexcept WEFT_NOT_ANALYZED {
  static_cast<SpinLock*>(held)->unlock();
}

// Returns an After that unlocks `lock`. park() runs it after the switch, so no other thread can
// find and wake the caller before its registers are saved. The lock analysis regards this call as
// the unlock.
[[nodiscard]] inline After unlock_after(SpinLock& lock) noexcept
    WEFT_RELEASES(lock) WEFT_NOT_ANALYZED {
  return {unlock_handed_over, &lock};
}

// Adds `waiter` to `list`, and parks the caller until a notifier removes `waiter` and wakes the
// caller. The caller must hold `lock`, which guards the list; the call releases it. `List` is
// WaitList, or has the same push_back() and erase_if_linked() but orders waiters differently.
template <class List>
void wait_in(List& list, SpinLock& lock, Waiter& waiter, WaitReason reason) noexcept
    WEFT_RELEASES(lock) {
  waiter.waker = current();
  list.push_back(waiter);
  park(unlock_after(lock), reason);
}

// Implements wait_in_until() for an `until` that may end the wait. Not inlined, so that waits
// without a limit stay fast.
template <class List>
[[nodiscard, gnu::noinline]] Claim::Winner wait_in_bounded(List& list, SpinLock& lock,
                                                           Waiter& waiter, WaitReason reason,
                                                           const Until& until) noexcept
    WEFT_RELEASES(lock) {
  if (until.stop_requested()) {
    lock.unlock();
    return BoundedPark::stopped_by(until);
  }
  BoundedPark bounded(until);
  waiter.waker = current();
  waiter.claim = &bounded.claim();
  list.push_back(waiter);
  const Claim::Winner winner = bounded.park(unlock_after(lock), reason);
  if (winner != Claim::kNotifier) {
    lock.lock();
    list.erase_if_linked(waiter);
    lock.unlock();
  }
  return winner;
}

// Waits as wait_in() does, but `until` may end the wait. Returns which party ended the wait.
// Removes the waiter from the list unless a notifier ended the wait.
template <class List>
[[nodiscard, gnu::always_inline]] inline Claim::Winner wait_in_until(List& list, SpinLock& lock,
                                                                     Waiter& waiter,
                                                                     WaitReason reason,
                                                                     const Until& until) noexcept
    WEFT_RELEASES(lock) {
  if (!until.is_never()) return wait_in_bounded(list, lock, waiter, reason, until);
  wait_in(list, lock, waiter, reason);
  return Claim::kNotifier;
}

// Wakes a non-empty chain from claim_all(), except its last waiter, which it returns for the caller
// to wake. A woken waiter's stack may be reused at once, so the next pointer is read first.
[[nodiscard]] inline Waiter* wake_all_but_last(Waiter* waiter) noexcept {
  while (Waiter* next = waiter->next) {
    next->waker.prefetch();
    wake(waiter->waker);
    waiter = next;
  }
  return waiter;
}
inline void wake_chain(Waiter* first) noexcept {
  if (first != nullptr) wake(wake_all_but_last(first)->waker);
}

}  // namespace weft::detail

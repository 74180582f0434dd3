// Waiting parties in a row, first come first served.
#pragma once

#include <cstddef>
#include <cstdint>
#include <weft/detail/spin_lock.hpp>
#include <weft/detail/waist.hpp>

namespace weft::detail {

// One wait of one party; lives on its stack. Guarded by the lock of the list it is in.
struct Waiter {
  Waiter* next = nullptr;
  Waiter* previous = nullptr;
  Waker waker;
  Claim* claim = nullptr;    // Null: only who takes it from the list can end this wait.
  void* slot = nullptr;      // Where a value is handed over, if the primitive hands one over.
  std::uint32_t amount = 0;  // What is asked for (a semaphore's permits).
  bool linked = false;
  bool granted = false;  // Set by the notifier: the thing waited for is the waiter's.
};

// A FIFO of waiters, guarded by its owner's lock.
// Invariant: a waiter is linked exactly while it is in the list.
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
  void erase(Waiter& waiter) noexcept {
    (waiter.previous == nullptr ? first_ : waiter.previous->next) = waiter.next;
    (waiter.next == nullptr ? last_ : waiter.next->previous) = waiter.previous;
    waiter.linked = false;
  }

  // Takes out the first waiter whose wait nobody else has ended, and ends it: the caller owes it
  // a wake. Those that the clock has already ended are unlinked and passed over.
  [[nodiscard]] Waiter* claim_front() noexcept {
    while (first_ != nullptr) {
      Waiter& waiter = *first_;
      erase(waiter);
      if (waiter.claim == nullptr || waiter.claim->try_claim(Claim::kNotifier)) return &waiter;
    }
    return nullptr;
  }

  // Moves the waiters that could be claimed, `most` of them at most, to a chain through `next`,
  // oldest first.
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

// An After that unlocks `lock`: whatever was published under it becomes visible only once the
// parked fiber's registers are saved.
[[nodiscard]] inline After unlock_after(SpinLock& lock) noexcept {
  return {[](void* held) noexcept { static_cast<SpinLock*>(held)->unlock(); }, &lock};
}

// Parks the caller at the back of `list` until it is taken out and woken. `lock`, which guards
// the list, is held on entry and not on return.
inline void wait_in(WaitList& list, SpinLock& lock, Waiter& waiter, WaitReason reason) noexcept {
  waiter.waker = current();
  list.push_back(waiter);
  park(unlock_after(lock), reason);
}

// As wait_in(), until `deadline` at most. False when the time was up; the waiter is then out of
// the list.
[[nodiscard]] inline bool wait_in_until(WaitList& list, SpinLock& lock, Waiter& waiter,
                                        WaitReason reason, Deadline deadline) noexcept {
  if (deadline.is_never()) {
    wait_in(list, lock, waiter, reason);
    return true;
  }
  Claim claim;
  waiter.waker = current();
  waiter.claim = &claim;
  list.push_back(waiter);
  if (park_until(unlock_after(lock), reason, deadline, claim) == Claim::kNotifier) return true;
  lock.lock();
  if (waiter.linked) list.erase(waiter);
  lock.unlock();
  return false;
}

// Wakes a chain from claim_all(). A woken waiter's stack may be gone at once, so the next one is
// read before.
inline void wake_chain(Waiter* waiter) noexcept {
  while (waiter != nullptr) {
    Waiter* next = waiter->next;
    // The next party's record is most likely out of the cache.
    if (next != nullptr) __builtin_prefetch(next->waker.target(), 1);
    wake(waiter->waker);
    waiter = next;
  }
}

}  // namespace weft::detail

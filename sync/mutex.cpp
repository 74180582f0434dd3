#include <weft/mutex.hpp>

#include <weft/detail/invariant.hpp>
#include <weft/detail/late_wait.hpp>

#include "base/lock_owners.hpp"
#include "base/panic.hpp"
#include "sync/misuse.hpp"
#include "sync/owner_notes.hpp"

namespace weft {

using detail::acquire;
using detail::relaxed;
using detail::release;
using detail::Waiter;

// Relaxed throughout this file: loads of state_ are only estimates, which a compare-exchange then
// checks. Changes of kWaiters are made under waiters_lock_, which orders them.

namespace {

// The longest pause before a load of the mutex; the pauses double from 1 up to this length.
// Meanwhile the owner on another worker completes many short sections while it has the cache lines.
// If the owners alternated at each section, each section would cost several transfers of cache
// lines. All pauses together take about as long as parking and waking: during a longer wait,
// running other fibers is better.
constexpr int kLongestPause = 16;

// A lock that takes longer counts as a late wait once the caller's context has ended.
[[maybe_unused]] constexpr std::chrono::milliseconds kLongLock(10);

}  // namespace

bool Mutex::take_if_free() noexcept {
  std::uint32_t state = state_.load(relaxed);
  // Even if kWaiters is set, a caller may take a free mutex: see the fairness rule.
  while (is_free(state)) {
    const std::uint32_t taken = (state & kWaiters) | kLocked;
    if (state_.compare_exchange_weak(state, taken, acquire, relaxed)) return true;  // [mutex]
  }
  return false;
}

bool Mutex::try_lock() noexcept {
  if (!base::notes_lock_owners()) [[likely]]
    return take_if_free();
  const detail::SpinGuard guard(waiters_lock_);
  if (!take_if_free()) return false;
  note_owner();
  return true;
}

bool Mutex::try_lock_until(const Until& until) noexcept {
  detail::give_way_if_due();
  return try_lock() || lock_contended_until(until);
}

// The slow path of lock(): at the end of a turn, and always while locks record their owners.
void Mutex::give_way_and_lock() noexcept WEFT_NOT_ANALYZED {
  detail::give_way();
  if (!try_lock()) lock_contended();
}

// A plain thread has the number 0.
void Mutex::note_owner() noexcept {
  if (base::notes_lock_owners()) owner_.note(sync::number_for_notes());
}

// Spinning is worthwhile only while the owner runs on another worker and no caller waits.
bool Mutex::spin() noexcept {
  for (int pauses = 1; pauses <= kLongestPause; pauses *= 2) {
    for (int i = 0; i < pauses; ++i) detail::pause_cpu();
    const std::uint32_t state = state_.load(relaxed);
    if ((state & kWaiters) != 0) return false;
    if (is_free(state) && take_if_free()) return true;
  }
  return false;
}

void Mutex::lock_contended() noexcept {
  WEFT_TELL_LATE_WAIT(mutex, lock_contended_until(Deadline::after(kLongLock)));
  (void)lock_contended_until({});
}

bool Mutex::lock_contended_until(const Until& until) noexcept {
  if (!base::notes_lock_owners() && spin()) return true;
  Waiter self;
  for (bool woken = false;; woken = true) {
    waiters_lock_.lock();
    if (lock_or_announce()) {
      note_owner();
      waiters_lock_.unlock();
      return true;
    }
    if (until.is_over()) {
      waiters_lock_.unlock();
      return false;
    }
    // An overtaken waiter rejoins at the head of the queue, and requests that the mutex be handed
    // to it.
    self.amount = woken ? 1 : 0;
    if (!wait_for_turn(self, woken, until)) return false;
    if (self.granted) {
      if (base::notes_lock_owners()) {
        const detail::SpinGuard guard(waiters_lock_);
        note_owner();
      }
      return true;
    }
  }
}

// Returns false if the mutex has an owner, whose unlock then serves the waiters.
bool Mutex::lock_or_announce() noexcept {
  const std::uint32_t others = waiters_.empty() ? 0 : kWaiters;
  std::uint32_t state = state_.load(relaxed);
  WEFT_INVARIANT(others == 0 || (state & kWaiters) != 0,
                 "Mutex I2: kWaiters is set while the list is not empty");
  for (;;) {
    if (is_free(state)) {
      const std::uint32_t taken = kLocked | others;
      if (state_.compare_exchange_weak(state, taken, acquire, relaxed)) return true;  // [mutex]
    } else if ((state & kWaiters) != 0) {
      return false;
    } else if (state_.compare_exchange_weak(state, kLocked | kWaiters, relaxed, relaxed)) {
      return false;
    }
  }
}

// Returns false if `until` ended the wait.
bool Mutex::wait_for_turn(Waiter& self, bool overtaken, const Until& until) noexcept {
  detail::BoundedPark bounded(until);
  self.waker = detail::current();
  self.claim = until.is_never() ? nullptr : &bounded.claim();
  if (overtaken) {
    waiters_.push_front(self);
  } else {
    waiters_.push_back(self);
  }
  const detail::After unlock = detail::unlock_after(waiters_lock_);
  if (self.claim == nullptr) {
    detail::park(unlock, detail::WaitReason::mutex);
    return true;
  }
  if (bounded.park(unlock, detail::WaitReason::mutex) == detail::Claim::kNotifier) return true;
  const detail::SpinGuard guard(waiters_lock_);
  waiters_.erase_if_linked(self);
  return false;
}

// The caller still owns the mutex (I1). A caller that locks a mutex that has become free may
// destroy it soon. If a waiter is to be woken, that waiter keeps the mutex alive. If there is no
// such waiter, freeing the mutex is the last access.
void Mutex::unlock_contended() noexcept {
  do {
    waiters_lock_.lock();
    WEFT_CHECK(state_.load(relaxed) == kWaiters,
               sync::of_object(this,
                               "a mutex that is not locked was unlocked; each unlock() must "
                               "follow a lock() of its own"));
    if (Waiter* next = waiters_.claim_front()) {
      if (base::notes_lock_owners()) owner_.note(0);
      hand_to(*next);
      return;
    }
    // All waiters have given up.
    state_.store(kLocked, relaxed);
    waiters_lock_.unlock();
  } while (state_.fetch_sub(kLocked, release) - kLocked != 0);  // [mutex]
}

// The caller has taken `next` out of the list.
void Mutex::hand_to(Waiter& next) noexcept {
  WEFT_INVARIANT(state_.load(relaxed) == kWaiters,
                 "Mutex I1: in an unlock() with waiters the state is kWaiters alone");
  const std::uint32_t waiters = waiters_.empty() ? 0 : kWaiters;
  if (next.amount == 1) {
    // The waiter was overtaken before, so the mutex passes to it without becoming free.
    next.granted = true;
    state_.store(kLocked | waiters, relaxed);
  } else {
    state_.store(waiters == 0 ? 0 : kOpen | kWaiters, release);  // [mutex]
  }
  waiters_lock_.unlock();
  detail::wake(next.waker);
}

}  // namespace weft

#include <weft/shared_mutex.hpp>

#include <weft/detail/invariant.hpp>

#include "base/lock_owners.hpp"
#include "base/panic.hpp"
#include "sync/misuse.hpp"
#include "sync/owner_notes.hpp"

namespace weft {

using detail::acquire;
using detail::relaxed;
using detail::release;
using detail::Waiter;
using detail::WaitReason;

// Relaxed throughout this file: changes of kWaiters are made under waiters_lock_, which orders
// them.

// The slow path of a lock: at the end of a turn, and always while locks record their owners.
void SharedMutex::give_way_and_lock(std::uint32_t owner) noexcept {
  detail::give_way();
  if (!take_and_note(owner)) (void)lock_contended(owner, {});
}

bool SharedMutex::take_and_note(std::uint32_t owner) noexcept {
  if (!take(owner)) return false;
  note_owner();
  return true;
}

// An owner calls it. Relaxed: the note is not for the mutex's other callers.
void SharedMutex::note_owner() noexcept {
  if (!base::notes_lock_owners()) return;
  state_.fetch_or(kNoted, relaxed);
  sync::note_owner_of(this);
}

bool SharedMutex::lock_contended(std::uint32_t owner, const Until& until) noexcept {
  const std::uint32_t obstacles = owner == kWriter ? ~0U : kWriter | kWaiters;
  waiters_lock_.lock();
  WEFT_INVARIANT(waiters_.empty() || (state_.load(relaxed) & kWaiters) != 0,
                 "SharedMutex I2: kWaiters is set while the list is not empty");
  for (std::uint32_t state = state_.load(relaxed);;) {
    if ((state & obstacles) == 0) {
      if (!state_.compare_exchange_weak(state, state + owner, acquire, relaxed))
        continue;  // [shared]
      waiters_lock_.unlock();
      note_owner();
      return true;
    }
    if (until.is_over()) {
      waiters_lock_.unlock();
      return false;
    }
    // The owner that sees the bit takes the lock, and finds this waiter.
    if ((state & kWaiters) != 0) break;
    if (state_.compare_exchange_weak(state, state | kWaiters, relaxed, relaxed)) break;
  }
  Waiter self;
  self.amount = owner;
  const WaitReason reason =
      owner == kWriter ? WaitReason::shared_mutex_write : WaitReason::shared_mutex_read;
  if (detail::wait_in_until(waiters_, waiters_lock_, self, reason, until) ==
      detail::Claim::kNotifier) {
    note_owner();
    return true;
  }
  let_in_after_withdrawal();
  return false;
}

// A waiter that gave up may have blocked readers that can join the present readers, or may have
// been the last in the queue.
void SharedMutex::let_in_after_withdrawal() noexcept {
  waiters_lock_.lock();
  Waiter* admitted = nullptr;
  const std::uint32_t state = state_.load(relaxed);
  if ((state & kWaiters) != 0) {
    const std::uint32_t before = state & ~kWaiters;
    WEFT_INVARIANT((before & ~kNoted) != 0,
                   "SharedMutex I3: while kWaiters is set the last owner stays");
    std::uint32_t owners = before;
    admitted = admit(owners);
    // There may be fewer readers than `before` now, but at least one (I3).
    if (owners != before) state_.fetch_add(owners - before, acquire);  // [shared]
    if (waiters_.empty()) state_.fetch_and(~kWaiters, relaxed);
  }
  waiters_lock_.unlock();
  detail::wake_chain(admitted);
}

// While callers wait, the mutex is handed over and does not become free. So it cannot be destroyed
// before the hand-over is done: the new owners must unlock it first.
void SharedMutex::unlock_contended(std::uint32_t owner) noexcept {
  if ((state_.load(relaxed) & kNoted) != 0) sync::forget_owner_of(this);
  do {
    waiters_lock_.lock();
    // Acquire, on behalf of the next owner: it sees what all former readers did.
    const std::uint32_t state = state_.load(acquire) & ~kNoted;  // [shared]
    WEFT_CHECK(is_owned_by(state, owner),
               owner == kWriter
                   ? sync::of_object(this,
                                     "a shared mutex that no writer had was unlocked; a "
                                     "reader gives it up by unlock_shared()")
                   : sync::of_object(this,
                                     "a shared mutex that no reader had was unlocked; a "
                                     "writer gives it up by unlock()"));
    WEFT_INVARIANT((state & kWriter) == 0 || state < kReader,
                   "SharedMutex I1: a writer is the only owner");
    if (state == (owner | kWaiters)) {
      if (hand_over()) return;
    } else {
      waiters_lock_.unlock();
    }
    // All waiters have given up, or other readers have come.
  } while (!leave_contended(owner));
}

// Does the same as leave(), for an owner whose record is gone.
bool SharedMutex::leave_contended(std::uint32_t owner) noexcept {
  std::uint32_t state = state_.load(relaxed);
  while (may_leave(state & ~kNoted, owner)) {
    std::uint32_t next = state - owner;
    if (next == kNoted) next = 0;
    if (state_.compare_exchange_weak(state, next, release, relaxed)) return true;  // [shared]
  }
  return false;
}

// The only owner calls it. Returns false if no waiter takes the mutex, which the caller then keeps.
bool SharedMutex::hand_over() noexcept {
  std::uint32_t owners = 0;
  Waiter* admitted = admit(owners);
  if (admitted == nullptr) {
    state_.fetch_and(~kWaiters, relaxed);
  } else {
    state_.store(owners | (waiters_.empty() ? 0 : kWaiters), release);  // [shared]
  }
  waiters_lock_.unlock();
  detail::wake_chain(admitted);
  return admitted != nullptr;
}

// Removes the first waiters that can own the mutex together with `owners`, and adds them to
// `owners`.
Waiter* SharedMutex::admit(std::uint32_t& owners) noexcept {
  Waiter* head = nullptr;
  Waiter** tail = &head;
  while (Waiter* first = waiters_.front()) {
    const bool fits = first->amount == kWriter ? owners == 0 : (owners & kWriter) == 0;
    if (!fits) break;
    waiters_.erase(*first);
    if (!detail::WaitList::try_claim(*first)) continue;
    owners += static_cast<std::uint32_t>(first->amount);
    *tail = first;
    tail = &first->next;
  }
  *tail = nullptr;
  return head;
}

}  // namespace weft

#include <weft/wait_group.hpp>

#include <weft/detail/invariant.hpp>

#include "base/panic.hpp"
#include "sync/misuse.hpp"

namespace weft {

using detail::acquire;
using detail::relaxed;
using detail::Waiter;

// Every wait takes the lock, even if the count is 0. The done() that set the count to 0 may still
// hold the lock, and must release it before the caller destroys the group.
bool WaitGroup::wait_until(const Until& until) noexcept {
  detail::give_way_if_due();
  waiters_lock_.lock();
  WEFT_INVARIANT(waiters_.empty() || (word_.load(relaxed) & kWaiters) != 0,
                 "WaitGroup I1: the bit is set while a waiter is in the list");
  // Setting the bit and finding the count at 0 exclude each other, so no last done() is missed.
  const std::uint64_t before = word_.fetch_or(kWaiters, acquire);  // [count]
  if (before == 0) {
    WEFT_INVARIANT(waiters_.empty(), "WaitGroup I2: a clear bit is set under the lock only");
    word_.fetch_and(~kWaiters, relaxed);
    waiters_lock_.unlock();
    return true;
  }
  // If the count is 0 and the bit is set, a done() is about to take the lock: it ends this wait.
  const Until limit = before == kWaiters ? Until() : until;
  Waiter self;
  if (detail::wait_in_until(waiters_, waiters_lock_, self, detail::WaitReason::wait_group, limit) ==
      detail::Claim::kNotifier) {
    return true;
  }
  return stop_waiting();
}

// Runs after a caller has given up its wait. The bit must not outlive the last waiter: a done()
// would then access a group that no waiter keeps alive. Returns true if the count is 0, after
// waiting for the done() that is still in progress, if any.
bool WaitGroup::stop_waiting() noexcept {
  waiters_lock_.lock();
  std::uint64_t word = word_.load(acquire);  // [count]
  while (word > kWaiters) {
    // Both orders are the same: without optimization, g++ 12 warns if the order for success is
    // weaker.
    if (!waiters_.empty() || word_.compare_exchange_weak(word, word & ~kWaiters, acquire,
                                                         acquire)) {  // [count]
      waiters_lock_.unlock();
      return false;
    }
  }
  if (word == kWaiters) {
    Waiter self;
    detail::wait_in(waiters_, waiters_lock_, self, detail::WaitReason::wait_group);
  } else {
    waiters_lock_.unlock();
  }
  return true;
}

void WaitGroup::reached_zero(std::uint64_t before) noexcept {
  WEFT_CHECK(before >= 2, sync::of_object(this,
                                          "WaitGroup::done() was called more often than "
                                          "add() announced; call add() before what is counted "
                                          "begins"));
  if (before == 2) return;  // No caller waits; the group may be gone already.
  waiters_lock_.lock();
  Waiter* waiters = waiters_.claim_all();
  word_.fetch_and(~kWaiters, relaxed);
  waiters_lock_.unlock();
  detail::wake_chain(waiters);
}

}  // namespace weft

#include <weft/wait_group.hpp>

#include "base/panic.hpp"

namespace weft {

using detail::acquire;
using detail::relaxed;
using detail::Waiter;

bool WaitGroup::wait_until(Deadline deadline) noexcept {
  if (word_.load(acquire) == 0) return true;  // [count]
  waiters_lock_.lock();
  // Setting the bit and finding the count at 0 exclude each other, so no last done() is missed.
  const std::uint64_t before = word_.fetch_or(kWaiters, acquire);  // [count]
  if (before <= kWaiters) {
    if (waiters_.empty()) word_.fetch_and(~kWaiters, relaxed);
    waiters_lock_.unlock();
    return true;
  }
  Waiter self;
  return detail::wait_in_until(waiters_, waiters_lock_, self, detail::WaitReason::wait_group,
                               deadline);
}

void WaitGroup::reached_zero(std::uint64_t before) noexcept {
  WEFT_CHECK(before >= 2, "WaitGroup::done() was called more often than add() announced");
  if (before == 2) return;  // Nobody waits; the group may be gone already.
  waiters_lock_.lock();
  Waiter* waiters = waiters_.claim_all();
  word_.fetch_and(~kWaiters, relaxed);
  waiters_lock_.unlock();
  detail::wake_chain(waiters);
}

}  // namespace weft

#include <weft/latch.hpp>

#include "base/panic.hpp"
#include "sync/misuse.hpp"

namespace weft {

using detail::Waiter;
using detail::WaitReason;

Latch::Latch(std::ptrdiff_t expected) noexcept : count_(expected) {
  WEFT_CHECK(
      expected >= 0,
      sync::of_object(this, "a Latch was made with a count of %td; must be at least 0", expected));
}

Waiter* Latch::subtract(std::ptrdiff_t count) noexcept {
  WEFT_CHECK(count >= 0 && count <= count_,
             sync::of_object(this, "a Latch was counted down below 0: by %td, with %td left", count,
                             count_));
  count_ -= count;
  return count_ == 0 ? waiters_.claim_all() : nullptr;
}

void Latch::count_down(std::ptrdiff_t count) noexcept {
  lock_.lock();
  Waiter* waiters = subtract(count);
  lock_.unlock();
  detail::wake_chain(waiters);
}

bool Latch::try_wait() noexcept {
  const detail::SpinGuard guard(lock_);
  return count_ == 0;
}

bool Latch::wait_until(const Until& until) noexcept {
  detail::give_way_if_due();
  lock_.lock();
  if (count_ == 0) {
    lock_.unlock();
    return true;
  }
  Waiter self;
  return detail::wait_in_until(waiters_, lock_, self, WaitReason::latch, until) ==
         detail::Claim::kNotifier;
}

// Counts down and enters the list in one locked section: between two sections, another caller might
// find the latch open, and destroy the latch.
void Latch::arrive_and_wait(std::ptrdiff_t count) noexcept {
  lock_.lock();
  Waiter* waiters = subtract(count);
  if (count_ == 0) {
    lock_.unlock();
    detail::wake_chain(waiters);
    return;
  }
  Waiter self;
  detail::wait_in(waiters_, lock_, self, WaitReason::latch);
}

}  // namespace weft

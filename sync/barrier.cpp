#include <weft/barrier.hpp>

#include <weft/detail/invariant.hpp>

#include "base/panic.hpp"
#include "sync/misuse.hpp"

namespace weft::detail {

BarrierCore::BarrierCore(std::ptrdiff_t expected) noexcept
    : expected_(expected), missing_(expected) {
  WEFT_CHECK(
      expected >= 0,
      sync::of_object(this, "a Barrier was made for a negative number of callers: %td", expected));
}

bool BarrierCore::subtract(std::ptrdiff_t count) noexcept {
  WEFT_CHECK(count > 0 && count <= missing_,
             sync::of_object(this,
                             "more callers arrived at a Barrier than it expects: %td, with %td "
                             "missing of %td",
                             count, missing_, expected_));
  missing_ -= count;
  return missing_ == 0;
}

BarrierCore::Arrival BarrierCore::arrive(std::ptrdiff_t count, std::ptrdiff_t dropped) noexcept {
  const detail::SpinGuard guard(lock_);
  expected_ -= dropped;
  return {phase_, subtract(count)};
}

bool BarrierCore::arrive_and_wait() noexcept {
  lock_.lock();
  if (subtract(1)) {
    lock_.unlock();
    return true;
  }
  Waiter self;
  wait_in(waiters_, lock_, self, WaitReason::barrier);
  return false;
}

void BarrierCore::complete() noexcept {
  lock_.lock();
  WEFT_INVARIANT(missing_ == 0, "BarrierCore I1: all have arrived when a phase ends");
  ++phase_;
  missing_ = expected_;
  Waiter* waiters = waiters_.claim_all();
  lock_.unlock();
  wake_chain(waiters);
}

bool BarrierCore::wait_until(std::uint64_t phase, const Until& until) noexcept {
  lock_.lock();
  if (phase_ != phase) {
    lock_.unlock();
    return true;
  }
  Waiter self;
  return wait_in_until(waiters_, lock_, self, WaitReason::barrier, until) == Claim::kNotifier;
}

}  // namespace weft::detail

#include <weft/latest_value.hpp>

namespace weft::detail {

void VersionCore::advance_and_unlock() noexcept {
  // At most this many waiters are woken before the lock, which readers need, is taken again.
  constexpr std::size_t kPortion = 64;
  const std::uint64_t version = ++version_;
  for (;;) {
    Waiter* some = nullptr;
    Waiter** last = &some;
    for (std::size_t i = 0; i < kPortion; ++i) {
      Waiter* waiter = waiters_.front();
      if (waiter == nullptr || waiter->amount >= version) break;
      waiters_.erase(*waiter);
      if (!WaitList::try_claim(*waiter)) continue;
      *last = waiter;
      last = &waiter->next;
    }
    *last = nullptr;
    const Waiter* next = waiters_.front();
    const bool has_more = next != nullptr && next->amount < version;
    lock_.unlock();
    wake_chain(some);
    if (!has_more) return;
    lock_.lock();
  }
}

bool VersionCore::wait_until(std::uint64_t seen, const Until& until) noexcept {
  give_way_if_due();
  lock_.lock();
  if (version_ != seen) {
    lock_.unlock();
    return true;
  }
  Waiter self;
  self.amount = seen;
  return wait_in_until(waiters_, lock_, self, WaitReason::event, until) == Claim::kNotifier;
}

}  // namespace weft::detail

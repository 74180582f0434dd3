// Tasks that have ended, and who waits for a number of them.
//
// A worker compares what it has counted with the smallest number that is waited for: the list of
// those who wait is looked at only when somebody in it has waited long enough.
#include <algorithm>

#include "pool/pool_core.hpp"

namespace weft::pool {

using detail::Waiter;

void PoolCore::count(detail::PoolJob::Outcome outcome, const Lap& lap) noexcept {
  using Outcome = detail::PoolJob::Outcome;
  if (timings_ != nullptr && outcome != Outcome::cancelled) timings_->record(lap);
  if (outcome == Outcome::completed) {
    ++completed_;
  } else if (outcome == Outcome::failed) {
    ++failed_;
  } else {
    ++cancelled_;
  }
}

// Requires lock_. Ends the waits for numbers that have been reached, and finds the next number.
// It was too small if the party that waited for it had given up.
void PoolCore::tell_counted(WakeChain& wakes) noexcept {
  awaited_count_ = UINT64_MAX;
  for (Waiter* next = count_waiters_.front(); next != nullptr;) {
    Waiter& waiter = *next;
    next = waiter.next;
    if (waiter.amount > ended()) {
      awaited_count_ = std::min(awaited_count_, waiter.amount);
      continue;
    }
    count_waiters_.erase(waiter);
    if (!detail::WaitList::try_claim(waiter)) continue;
    waiter.granted = true;
    wakes.add(waiter);
  }
}

bool PoolCore::wait_for_completed(std::uint64_t count, const Until& until) {
  refuse_own_tasks();
  lock_.lock();
  if (ended() >= count || is_gone()) {
    const bool reached = ended() >= count;
    lock_.unlock();
    return reached;
  }
  Waiter self;
  self.amount = count;
  awaited_count_ = std::min(awaited_count_, count);
  const auto winner =
      detail::wait_in_until(count_waiters_, lock_, self, detail::WaitReason::pool_wait, until);
  return winner == detail::Claim::kNotifier && self.granted;
}

// Notes when an item is submitted, if times are taken and nobody has noted it yet.
void PoolCore::stamp(detail::PoolItem& item) const noexcept {
  if (timings_ != nullptr && item.submitted_at == 0) {
    item.submitted_at = timings_->stamp_submit();
  }
}

PoolTimings PoolCore::timings() noexcept {
  if (timings_ == nullptr) return {};
  lock_.lock();
  const PoolTimings timings = timings_->read();
  lock_.unlock();
  return timings;
}

}  // namespace weft::pool

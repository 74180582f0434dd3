// Slots that a waiting task lends to others.
//
// A task that waits for its own pool would hold a slot that the awaited task may need: with a
// capacity of 1 it would wait for ever. So it gives the slot up and is counted as lent, not as
// running; when its wait is over it takes a free slot, or the next that becomes free, which is not
// offered to queued tasks then. Never more than `capacity` tasks run, and the queue's bound holds.
// A task with a weight lends, and takes back, as many slots. While it waits for them no task
// starts, and they are not offered to newcomers: or else light tasks could keep it waiting for
// ever.
#include <algorithm>
#include <weft/detail/slot_loan.hpp>

#include "pool/pool_core.hpp"
#include "pool/registry.hpp"

namespace weft {

namespace {

// From the innermost pool outwards. Who holds a slot of a sub-pool may wait for one of its host:
// those who hold that one never wait for an inner one, because a visit takes only what is free. So
// nobody waits in a circle.
template <class Action>
void for_each_slot(pool::Registration* innermost, Action action) {
  for (auto* entry = innermost; entry != nullptr; entry = entry->outer()) {
    if (entry->core().lends()) action(entry->core(), pool::Backlog::weight_of(entry->running()));
  }
}

pool::Registration* lender_to(const pool::PoolCore* family) noexcept {
  pool::Registration* const entry = pool::Registration::of_caller();
  return entry != nullptr && &entry->core().family() == family ? entry : nullptr;
}

}  // namespace

detail::SlotLoan::SlotLoan(const pool::PoolCore* family) noexcept : lender_(lender_to(family)) {
  for_each_slot(lender_, [](pool::PoolCore& core, std::size_t weight) { core.lend_slots(weight); });
}

detail::SlotLoan::~SlotLoan() {
  for_each_slot(lender_,
                [](pool::PoolCore& core, std::size_t weight) { core.reclaim_slots(weight); });
}

namespace pool {

using detail::Waiter;

void PoolCore::lend_slots(std::size_t weight) noexcept {
  lock_.lock();
  --running_;
  extra_running_ -= weight - 1;
  load_ -= weight;
  --live_;
  ++lent_;
  match_up();
}

void PoolCore::reclaim_slots(std::size_t weight) noexcept {
  lock_.lock();
  if (!returning_.empty() || !slots_for_lender(weight)) {
    Waiter self;
    self.amount = weight;
    if (weight > 1) reserve(reserved_ + weight);
    detail::wait_in(returning_, lock_, self, detail::WaitReason::pool_wait);
    return;
  }
  take_back_slots(weight);
  WakeChain wakes;
  retire_surplus(wakes);
  lock_.unlock();
  wakes.wake_all();
}

// Requires lock_. A slot that a queued item counts on is not free (I2). But while a heavy task
// waits for its slots nothing starts: then nobody counts on one, and all lenders must be able to go
// on.
bool PoolCore::slots_for_lender(std::size_t weight) const noexcept {
  const std::size_t used = running_ + extra_running_;
  if (weight > 1) return used == 0 || used + weight <= capacity_;
  return used < capacity_ && (reserved_ > 0 || load_ < unreserved_bound());
}

// Requires lock_.
void PoolCore::take_back_slots(std::size_t weight) noexcept {
  --lent_;
  ++live_;
  ++running_;
  extra_running_ += weight - 1;
  load_ += weight;
}

// Requires lock_. Gives free slots to the lenders that have waited longest. I1 may be broken on
// return: the caller retires itself or calls retire_surplus().
void PoolCore::return_slots(WakeChain& wakes) noexcept {
  while (!returning_.empty() && slots_for_lender(returning_.front()->amount)) {
    Waiter& lender = *returning_.claim_front();
    if (lender.amount > 1) reserve(reserved_ - lender.amount);
    take_back_slots(lender.amount);
    wakes.add(lender);
  }
}

// Requires lock_.
std::size_t PoolCore::unreserved_bound() const noexcept {
  const std::size_t sum = capacity_ + options_.queue_capacity;
  return sum < capacity_ ? kUnlimited : sum;
}

// Requires lock_. Keeps so many places from newcomers, for heavy tasks that want their slots back.
void PoolCore::reserve(std::size_t places) noexcept {
  reserved_ = places;
  const std::size_t whole = unreserved_bound();
  bound_ = whole == kUnlimited ? kUnlimited : whole - std::min(whole, reserved_);
}

}  // namespace pool
}  // namespace weft

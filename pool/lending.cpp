// Slots that a waiting task lends to others.
//
// A task that waits for its own pool would hold a slot that the awaited task may need: with a
// capacity of 1 it would wait for ever. So it gives the slot up and is counted as lent, not as
// running; when its wait is over it takes a free slot, or the next that becomes free, which is not
// offered to queued tasks then. Never more than `capacity` tasks run, and the queue's bound holds.
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
    if (entry->core().lends()) action(entry->core());
  }
}

pool::Registration* lender_to(const pool::PoolCore* family) noexcept {
  pool::Registration* const entry = pool::Registration::of_caller();
  return entry != nullptr && &entry->core().family() == family ? entry : nullptr;
}

}  // namespace

detail::SlotLoan::SlotLoan(const pool::PoolCore* family) noexcept : lender_(lender_to(family)) {
  for_each_slot(lender_, [](pool::PoolCore& core) { core.lend_slot(); });
}

detail::SlotLoan::~SlotLoan() {
  for_each_slot(lender_, [](pool::PoolCore& core) { core.reclaim_slot(); });
}

namespace pool {

using detail::Waiter;

void PoolCore::lend_slot() noexcept {
  lock_.lock();
  --running_;
  --load_;
  --live_;
  ++lent_;
  match_up();
}

void PoolCore::reclaim_slot() noexcept {
  lock_.lock();
  if (!slot_for_lender()) {
    Waiter self;
    detail::wait_in(returning_, lock_, self, detail::WaitReason::pool_wait);
    return;
  }
  take_back_slot();
  WakeChain wakes;
  retire_surplus(wakes);
  lock_.unlock();
  wakes.wake_all();
}

// Requires lock_. A slot that a queued item counts on is not free (I2).
bool PoolCore::slot_for_lender() const noexcept {
  return running_ + extra_running_ < capacity_ && has_room();
}

// Requires lock_.
void PoolCore::take_back_slot() noexcept {
  --lent_;
  ++live_;
  ++running_;
  ++load_;
}

// Requires lock_. Gives free slots to the lenders that have waited longest. I1 may be broken on
// return: the caller retires itself or calls retire_surplus().
void PoolCore::return_slots(WakeChain& wakes) noexcept {
  while (!returning_.empty() && slot_for_lender()) {
    take_back_slot();
    wakes.add(*returning_.claim_front());
  }
}

}  // namespace pool
}  // namespace weft

// The waiters of a pool, by what they wait for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <weft/detail/waiter.hpp>
#include <weft/submit_options.hpp>

#include "pool/queue/task_queue.hpp"

namespace weft::pool {

// A caller that is parked in submit until there is room for its task; lives on its stack. `slot` is
// its PoolItem, `amount` its number by arrival.
struct Submitter : detail::Waiter {
  [[nodiscard]] detail::PoolItem& item() const noexcept {
    return *static_cast<detail::PoolItem*>(slot);
  }
  bool waits_behind_key = false;
};

// Submitters by arrival, in two lists: those who wait for room, first come, first served; and those
// whose task is held up by another of its key, and who wait for a place behind that. Nobody who
// waits for room has to wait for these: the holder of the key may be waiting for that room itself.
// Guarded by its owner's lock.
// Invariant: both lists are in the order of arrival.
class BlockedSubmitters {
 public:
  [[nodiscard]] bool empty() const noexcept { return for_room_.empty() && behind_keys_.empty(); }
  [[nodiscard]] bool nobody_waits_for_room() const noexcept { return for_room_.empty(); }
  // The submitter that has waited longest; null if there is none.
  [[nodiscard]] Submitter* first_for_room() noexcept {
    return static_cast<Submitter*>(for_room_.front());
  }
  [[nodiscard]] Submitter* first_behind_key() noexcept {
    return static_cast<Submitter*>(behind_keys_.front());
  }

  // Adds a submitter to the list that it says it waits in.
  void push_back(detail::Waiter& waiter) noexcept {
    waiter.amount = ++arrived_;
    list_of(static_cast<Submitter&>(waiter)).push_back(waiter);
  }
  void erase(Submitter& submitter) noexcept { list_of(submitter).erase(submitter); }
  void erase_if_linked(detail::Waiter& waiter) noexcept {
    if (waiter.linked) erase(static_cast<Submitter&>(waiter));
  }
  // The submitter waits for a place behind its key instead of for room.
  void wait_behind_key(Submitter& submitter) noexcept {
    move(submitter, for_room_, behind_keys_, true);
  }
  // Nobody holds the key any more: the first who waits behind it waits for room instead.
  void release_key(const TaskKey& key) noexcept {
    detail::Waiter* waiter = behind_keys_.front();
    while (waiter != nullptr && !has_key(*waiter, key)) waiter = waiter->next;
    if (waiter != nullptr) {
      move(static_cast<Submitter&>(*waiter), behind_keys_, for_room_, false);
    }
  }
  // Ends the wait of the first of all whose wait nobody else has ended; null if there is none.
  [[nodiscard]] Submitter* claim_front() noexcept {
    detail::Waiter* waiter = for_room_.claim_front();
    if (waiter == nullptr) waiter = behind_keys_.claim_front();
    return static_cast<Submitter*>(waiter);
  }
  // Takes those out, from the front of both lists, who have given up.
  void forget_given_up() noexcept {
    (void)for_room_.has_claimable();
    (void)behind_keys_.has_claimable();
  }

 private:
  [[nodiscard]] detail::WaitList& list_of(const Submitter& submitter) noexcept {
    return submitter.waits_behind_key ? behind_keys_ : for_room_;
  }
  [[nodiscard]] static bool has_key(const detail::Waiter& waiter, const TaskKey& key) noexcept {
    const auto* attributes = TaskQueue::attributes_of(static_cast<const Submitter&>(waiter).item());
    return attributes != nullptr && attributes->key.is_set() &&
           attributes->key.hash() == key.hash();
  }
  static void move(Submitter& submitter, detail::WaitList& from, detail::WaitList& to,
                   bool waits_behind_key) noexcept {
    from.erase(submitter);
    submitter.waits_behind_key = waits_behind_key;
    detail::Waiter* next = to.front();
    while (next != nullptr && next->amount < submitter.amount) next = next->next;
    to.insert_before(next, submitter);
  }

  detail::WaitList for_room_;
  detail::WaitList behind_keys_;
  std::uint64_t arrived_ = 0;
};

// All of them. A plain value; its owner has the lock.
struct Waiters {
  BlockedSubmitters blocked;
  // Submitters and sub-pools, with those who have given up and have yet to say so.
  std::size_t blocked_count = 0;
  std::size_t parked = 0;        // Of them, the submitters.
  detail::WaitList reacquiring;  // Tasks that want their slots back.
  detail::WaitList idle;         // Until no task is queued or runs.
  detail::WaitList paused;       // Until no task runs, while the pool is paused.
  detail::WaitList joiners;
  detail::WaitList counted;  // Until so many tasks have ended.
};

}  // namespace weft::pool

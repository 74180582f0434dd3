// The waiters of a pool, grouped by condition.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <weft/detail/waiter.hpp>
#include <weft/submit_options.hpp>

#include "pool/queue/task_queue.hpp"

namespace weft::pool {

// A waiter for room in a pool: a caller that is parked in a submit function, or a sub-pool that
// submits a drain task. A caller's Submitter is on the caller's stack. `slot` points to the
// PoolItem that waits for room. `amount` is the submitter's number in the order of arrival.
struct Submitter : detail::Waiter {
  [[nodiscard]] detail::PoolItem& item() const noexcept {
    return *static_cast<detail::PoolItem*>(slot);
  }
  bool waits_behind_key = false;
};

// Keeps blocked submitters in two lists. Submitters in for_room_ wait for room, in FIFO order. Each
// submitter in behind_keys_ has a task whose key another task holds. The queue limits the total
// weight of such tasks, and these submitters wait until this weight falls. Submitters in for_room_
// never wait for submitters in behind_keys_. Otherwise a deadlock would be possible: a key's holder
// could wait for room behind a submitter that waits for the key. The pool's lock guards the lists.
// Invariant: both lists are in the order of arrival.
class BlockedSubmitters {
 public:
  // The size includes submitters that have given up, until they remove themselves or another caller
  // removes them.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] bool nobody_waits_for_room() const noexcept { return for_room_.empty(); }
  // Returns the submitter that has waited longest and has not given up, or null.
  [[nodiscard]] Submitter* first_for_room() noexcept { return first_of(for_room_); }
  [[nodiscard]] Submitter* first_behind_key() noexcept { return first_of(behind_keys_); }

  // Adds a submitter to behind_keys_ if its waits_behind_key is set, and to for_room_ otherwise.
  void push_back(detail::Waiter& waiter) noexcept {
    waiter.amount = ++arrived_;
    ++size_;
    list_of(static_cast<Submitter&>(waiter)).push_back(waiter);
  }
  void erase(Submitter& submitter) noexcept {
    list_of(submitter).erase(submitter);
    --size_;
  }
  // Removes the submitter and ends its wait. Returns false if it has already given up waiting.
  [[nodiscard]] bool claim(Submitter& submitter) noexcept {
    erase(submitter);
    return detail::WaitList::try_claim(submitter);
  }
  // Removes the first submitter that has not given up, ends its wait, and returns it. Returns null
  // if no such submitter exists.
  [[nodiscard]] Submitter* claim_front() noexcept {
    for (;;) {
      Submitter* first = first_for_room();
      if (first == nullptr) first = first_behind_key();
      if (first == nullptr || claim(*first)) return first;
    }
  }
  void erase_if_linked(detail::Waiter& waiter) noexcept {
    if (waiter.linked) erase(static_cast<Submitter&>(waiter));
  }
  // Moves the submitter from for_room_ to behind_keys_, because another task holds its task's key.
  void wait_behind_key(Submitter& submitter) noexcept {
    move(submitter, for_room_, behind_keys_, true);
  }
  // Called when no task holds the key any more. Moves the first submitter whose task has this key
  // from behind_keys_ to for_room_.
  void release_key(const TaskKey& key) noexcept {
    detail::Waiter* waiter = behind_keys_.front();
    while (waiter != nullptr && !has_key(*waiter, key)) waiter = waiter->next;
    if (waiter != nullptr) {
      move(static_cast<Submitter&>(*waiter), behind_keys_, for_room_, false);
    }
  }

 private:
  [[nodiscard]] Submitter* first_of(detail::WaitList& list) noexcept {
    for (;;) {
      auto* const first = static_cast<Submitter*>(list.front());
      const bool has_given_up = first != nullptr && first->claim != nullptr &&
                                first->claim->winner() != detail::Claim::kNobody;
      if (!has_given_up) return first;
      erase(*first);
    }
  }
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
  std::size_t size_ = 0;
  std::uint64_t arrived_ = 0;
};

// The conditions for which a caller may wait. Idle: no task is queued or running. Paused: the pool
// is paused and no task is running. Joined: the pool is closed, and no task, fiber or caller still
// uses it. Counted: a given number of tasks have ended.
enum class Condition : std::uint8_t { idle, paused, joined, counted };

// All waiters of a pool. The pool's lock guards them.
struct Waiters {
  [[nodiscard]] detail::WaitList& of(Condition condition) noexcept {
    return conditions[static_cast<std::size_t>(condition)];
  }

  BlockedSubmitters blocked;
  std::size_t parked = 0;        // Parked callers, and callers that gave up but have not returned.
  detail::WaitList reacquiring;  // Tasks that gave their slots back and now wait for slots again.
  std::array<detail::WaitList, 4> conditions;
};

}  // namespace weft::pool

// Workers that wait for a task, hottest first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <weft/detail/waiter.hpp>
#include <weft/pool.hpp>

#include "pool/timing_book.hpp"

namespace weft::pool {

// What a pool knows of one of its worker fibers; lives on that fiber's stack. As a Waiter it
// stands in a chain of parties to wake.
struct Worker : detail::Waiter {
  Worker* hotter = nullptr;  // The IdleStack's links.
  Worker* colder = nullptr;
  std::uint64_t idle_since = 0;       // The pool's epoch when it went idle.
  std::uint64_t number = 0;           // Of the task it runs, as in TaskInfo.
  bool awaited = true;                // Counted in PoolCore::waking_ until it looks for a task.
  bool freed_more = false;            // Its last task may have let more than one other start.
  bool retired = false;               // Set by who took it, with its slot, for good.
  Lap lap;                            // Of that task, if times are taken.
  detail::Waiter* told = nullptr;     // Those who waited for that task, and are owed a wake.
  detail::PoolJob* unused = nullptr;  // To be destroyed, without lock_.
  detail::PoolJob::Outcome outcome = detail::PoolJob::Outcome::completed;  // Of that task.
};

// Without the pool's lock.
inline void release_unused(Worker& worker) noexcept {
  if (worker.unused != nullptr) std::exchange(worker.unused, nullptr)->release_reference();
}

// A doubly linked stack: the hottest worker on top, the one that idled longest at the bottom.
// Guarded by its owner's lock. Invariant: idle_since never increases from top to bottom.
class IdleStack {
 public:
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  void push(Worker& worker) noexcept {
    worker.hotter = nullptr;
    worker.colder = top_;
    (top_ == nullptr ? bottom_ : top_->hotter) = &worker;
    top_ = &worker;
    ++size_;
  }
  // The hottest worker. Requires that there is one.
  [[nodiscard]] Worker& pop() noexcept {
    Worker& worker = *top_;
    top_ = worker.colder;
    (top_ == nullptr ? bottom_ : top_->hotter) = nullptr;
    --size_;
    return worker;
  }
  // The coldest worker. Requires that there is one.
  [[nodiscard]] const Worker& bottom() const noexcept { return *bottom_; }
  [[nodiscard]] Worker& pop_bottom() noexcept {
    Worker& worker = *bottom_;
    bottom_ = worker.hotter;
    (bottom_ == nullptr ? top_ : bottom_->colder) = nullptr;
    --size_;
    return worker;
  }

 private:
  Worker* top_ = nullptr;
  Worker* bottom_ = nullptr;
  std::size_t size_ = 0;
};

// Parties that were made ready under a lock and are woken, in order, once it is released.
class WakeChain {
 public:
  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  void add(detail::Waiter& waiter) noexcept {
    if (!waiter.waker) return;  // A sub-pool that stood in line: nobody is parked.
    waiter.next = nullptr;
    *end_ = &waiter;
    end_ = &waiter.next;
  }
  // Takes over what WaitList::claim_all() returned.
  void add_all(detail::Waiter* chain) noexcept {
    while (chain != nullptr) {
      detail::Waiter* next = chain->next;
      add(*chain);
      chain = next;
    }
  }
  [[nodiscard]] detail::Waiter* take_all() noexcept {
    end_ = &first_;
    return std::exchange(first_, nullptr);
  }
  // Without any lock held.
  void wake_all() noexcept {
    if (first_ != nullptr) detail::wake_chain(first_);
  }

  WakeChain() noexcept = default;
  WakeChain(const WakeChain&) = delete;
  WakeChain& operator=(const WakeChain&) = delete;

 private:
  detail::Waiter* first_ = nullptr;
  detail::Waiter** end_ = &first_;
};

}  // namespace weft::pool

// The fibers that did not fit into a worker's run queue.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <weft/detail/atomic.hpp>
#include <weft/detail/spin_lock.hpp>

#include "scheduler/run_queue.hpp"

namespace weft::fibers {
struct Fiber;
}

namespace weft::scheduler {

// Chains of fibers linked through `next`, at both ends. The owner goes on with the newest chain:
// a program that spawns trees of fibers then runs depth first, so few fibers of it are parked at
// a time. Thieves, and the owner every so often for fairness, take the oldest.
// A lock guards it, which is touched once per 128 fibers, but for those that come one by one.
class OverflowQueue {
 public:
  // Owner only. Makes room for one more chain, so that the next push() cannot fail. Throws
  // std::bad_alloc.
  void make_room();
  // Owner only, after make_room().
  void push_newest(fibers::Fiber& chain) noexcept;
  // Owner only, after make_room(). At the end of the newest chain, if that has grown so and is not
  // long; else as a newer one.
  void push_newest_fiber(fibers::Fiber& fiber) noexcept;
  // Owner only. False where that would need memory.
  [[nodiscard]] bool try_push_oldest(fibers::Fiber& chain) noexcept;
  [[nodiscard]] fibers::Fiber* take_newest() noexcept;
  [[nodiscard]] fibers::Fiber* take_oldest() noexcept;
  // One fiber of the oldest chain; nullptr when empty.
  [[nodiscard]] fibers::Fiber* take_oldest_fiber() noexcept;

  // Relaxed: a hint, for those who look before they lock.
  [[nodiscard]] std::size_t size_hint() const noexcept { return count_.load(detail::relaxed); }

 private:
  [[nodiscard]] fibers::Fiber*& at(std::size_t position) noexcept WEFT_REQUIRES(lock_) {
    return chains_[(first_ + position) % capacity_];
  }

  // Of chains that grow fiber by fiber: as of those that a full ring gives up, for which an empty
  // one has room.
  static constexpr std::size_t kLongest = RunQueue::kCapacity / 2;

  detail::SpinLock lock_;
  detail::Atomic<std::size_t> count_{0};
  std::size_t first_ WEFT_GUARDED_BY(lock_) = 0;
  std::size_t capacity_ = 0;  // Changed by the owner only.
  // Owner only: the end of the newest chain, as long as so many more fibers may follow.
  fibers::Fiber* growing_end_ = nullptr;
  std::size_t growing_room_ = 0;
  std::unique_ptr<fibers::Fiber*[]> chains_ WEFT_GUARDED_BY(lock_);
};

}  // namespace weft::scheduler

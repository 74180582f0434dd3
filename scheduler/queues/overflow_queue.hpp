// The fibers that did not fit into a worker's run queue.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <weft/detail/atomic.hpp>
#include <weft/detail/spin_lock.hpp>

#include "scheduler/queues/run_queue.hpp"

namespace weft::fibers {
struct Fiber;
}

namespace weft::scheduler {

// A lock guards the queue. A caller takes the lock once for a chain of up to 128 fibers, or for a
// single fiber.
class OverflowQueue {
 public:
  // Owner only. Makes room for one more chain, so that the next push_newest() or
  // push_newest_fiber() cannot fail. Throws std::bad_alloc.
  void make_room();
  // Owner only, after make_room().
  void push_newest(fibers::Fiber& chain) noexcept;
  // Owner only, after make_room(). Appends the fiber to the newest chain, if this function began
  // that chain and the chain is shorter than kLongest. Otherwise begins a newer chain.
  void push_newest_fiber(fibers::Fiber& fiber) noexcept;
  // Owner only. Returns false if the push would need memory.
  [[nodiscard]] bool try_push_oldest(fibers::Fiber& chain) noexcept;
  [[nodiscard]] fibers::Fiber* take_newest() noexcept;
  [[nodiscard]] fibers::Fiber* take_oldest() noexcept;
  // Takes one fiber from the oldest chain; returns nullptr if the queue is empty.
  [[nodiscard]] fibers::Fiber* take_oldest_fiber() noexcept;

  // Relaxed: without the lock, the result is only a hint.
  [[nodiscard]] std::size_t size_hint() const noexcept { return count_.load(detail::relaxed); }

 private:
  [[nodiscard]] fibers::Fiber*& at(std::size_t position) noexcept WEFT_REQUIRES(lock_) {
    return chains_[(first_ + position) % capacity_];
  }

  // The maximum length of a chain that grows fiber by fiber: half the capacity of a ring.
  static constexpr std::size_t kLongest = RunQueue::kCapacity / 2;

  detail::SpinLock lock_;
  detail::Atomic<std::size_t> count_{0};
  std::size_t first_ WEFT_GUARDED_BY(lock_) = 0;
  std::size_t capacity_ = 0;  // Only the owner changes it.
  // Only the owner uses the end of the newest chain, and the number of fibers that still fit behind
  // it.
  fibers::Fiber* growing_end_ = nullptr;
  std::size_t growing_room_ = 0;
  std::unique_ptr<fibers::Fiber*[]> chains_ WEFT_GUARDED_BY(lock_);
};

}  // namespace weft::scheduler

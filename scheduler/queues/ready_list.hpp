// Runnable fibers that did not fit into a worker's ring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <weft/detail/atomic.hpp>
#include <weft/detail/spin_lock.hpp>

namespace weft::fibers {
struct Fiber;
}

namespace weft::scheduler {

// Fibers linked through Fiber::next, with how many they are.
struct Chain {
  fibers::Fiber* first = nullptr;
  fibers::Fiber* last = nullptr;
  std::size_t count = 0;

  [[nodiscard]] bool is_empty() const noexcept { return first == nullptr; }
  // Neither allocates nor can fail.
  void append(fibers::Fiber& fiber) noexcept;
  void append(const Chain& chain) noexcept;
  void prepend(fibers::Fiber& fiber) noexcept;
  [[nodiscard]] fibers::Fiber* take_first() noexcept;
};

// An unbounded FIFO that never allocates. Any thread may call anything but merge(); a lock guards
// it, and a caller takes many fibers in one hold of it.
class ReadyList {
 public:
  // The most that one call of take() walks over with the lock held.
  static constexpr std::size_t kMostTaken = 128;
  static constexpr std::size_t kMostPassed = 2048;

  void push_last(fibers::Fiber& fiber) noexcept;
  void push_last(const Chain& chain) noexcept;
  // Puts the chain in front of all others, in its order.
  void push_first(const Chain& chain) noexcept;
  // Puts each before the first that has been ready for less long, by Fiber::ready_since(now). It
  // keeps the chain's order and that of the others, of which it passes kMostPassed at most. Only
  // the thread that pushes calls it; others find the list empty meanwhile.
  void merge(Chain chain, std::int64_t now) noexcept;
  // Takes up to `most` of the oldest, and kMostTaken at most.
  [[nodiscard]] Chain take(std::size_t most) noexcept;

  // Since when the oldest has been ready, by Fiber::ready_since(now); the largest number if there
  // is none.
  [[nodiscard]] std::int64_t oldest_since(std::int64_t now) noexcept;

  // Relaxed: a hint, for callers that look before they lock.
  [[nodiscard]] std::size_t size_hint() const noexcept { return count_.load(detail::relaxed); }

 private:
  [[nodiscard]] Chain take_everything() noexcept;
  void set_count(std::size_t count) noexcept WEFT_REQUIRES(lock_) {
    count_.store(count, detail::relaxed);
  }

  detail::SpinLock lock_;
  Chain chain_ WEFT_GUARDED_BY(lock_);  // Its count is in count_ instead.
  detail::Atomic<std::size_t> count_{0};
};

}  // namespace weft::scheduler

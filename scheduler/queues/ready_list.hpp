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

// A list of fibers, linked through Fiber::next, with its length.
struct Chain {
  fibers::Fiber* first = nullptr;
  fibers::Fiber* last = nullptr;
  std::size_t count = 0;

  [[nodiscard]] bool is_empty() const noexcept { return first == nullptr; }
  // Does not allocate, and cannot fail.
  void append(fibers::Fiber& fiber) noexcept;
  void append(const Chain& chain) noexcept;
  void prepend(fibers::Fiber& fiber) noexcept;
  [[nodiscard]] fibers::Fiber* take_first() noexcept;
};

// An unbounded FIFO that never allocates. Any thread may call any function except merge(). A lock
// guards the list. take() acquires the lock once and can remove many fibers.
class ReadyList {
 public:
  // The maximum number of fibers that one call to take() visits under the lock.
  static constexpr std::size_t kMostTaken = 128;
  static constexpr std::size_t kMostPassed = 2048;

  void push_last(fibers::Fiber& fiber) noexcept;
  void push_last(const Chain& chain) noexcept;
  // Puts the chain's fibers, in their order, before all other fibers.
  void push_first(const Chain& chain) noexcept;
  // Inserts each fiber before the first fiber with a later Fiber::ready_since(now), but with at
  // most kMostPassed fibers of the list before it. The order within the chain and within the list
  // does not change. Only the thread that pushes fibers may call merge(); during the call, other
  // threads find the list empty.
  void merge(Chain chain, std::int64_t now) noexcept;
  // Takes the oldest fibers, up to min(most, kMostTaken).
  [[nodiscard]] Chain take(std::size_t most) noexcept;

  // Returns Fiber::ready_since(now) of the oldest fiber, or INT64_MAX if the list is empty.
  [[nodiscard]] std::int64_t oldest_since(std::int64_t now) noexcept;

  // Relaxed: without the lock, the result is only a hint.
  [[nodiscard]] std::size_t size_hint() const noexcept { return count_.load(detail::relaxed); }

 private:
  [[nodiscard]] Chain take_everything() noexcept;
  void set_count(std::size_t count) noexcept WEFT_REQUIRES(lock_) {
    count_.store(count, detail::relaxed);
  }

  detail::SpinLock lock_;
  Chain chain_ WEFT_GUARDED_BY(lock_);  // Its count is unused; count_ holds the length.
  detail::Atomic<std::size_t> count_{0};
};

}  // namespace weft::scheduler

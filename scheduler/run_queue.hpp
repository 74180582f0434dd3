// The runnable fibers of one worker.
#pragma once

#include <array>
#include <cstdint>
#include <weft/detail/atomic.hpp>

#include "base/cache_line.hpp"

namespace weft::fibers {
struct Fiber;
}

namespace weft::scheduler {

// A FIFO with one owner, its worker, and any number of thieves, the other workers.
// Invariants
//   I1  0 <= tail_ - head_ <= kCapacity, and both counters only grow (modulo 2^32).
//   I2  A slot in [head_, tail_) holds a runnable fiber that is in no other queue.
//   I3  Only the owner writes slots and tail_; anyone moves head_, by compare-exchange only.
// Order
//   [tail]  push stores tail_ (release) -> steal_half loads it (acquire): slot and fiber visible.
//   [head]  pop, steal_half and spill_half move head_ (release) -> push, spill_half and
//           steal_half load it (acquire): the slot has been read, so it may be written again.
class RunQueue {
 public:
  static constexpr std::uint32_t kCapacity = 256;  // A power of two: a counter masks to a slot.

  // Owner only. False when full; the owner then spills.
  [[nodiscard]] bool push(fibers::Fiber& fiber) noexcept;
  // Owner only. The oldest fiber, or nullptr when empty.
  [[nodiscard]] fibers::Fiber* pop() noexcept;
  // Owner only. Takes the older half of a full queue into `spilled`; false when a thief has made
  // room meanwhile.
  using Spilled = std::array<fibers::Fiber*, kCapacity / 2>;
  [[nodiscard]] bool spill_half(Spilled& spilled) noexcept;
  // By the owner of `into`, which must be empty. Moves the older half there and returns one of
  // them to run; nullptr when there was nothing or another thief was faster.
  [[nodiscard]] fibers::Fiber* steal_half(RunQueue& into) noexcept;

  // May be stale when they return.
  [[nodiscard]] std::uint32_t size_hint() const noexcept {
    // Relaxed: both are hints. Read in this order the difference is never negative.
    const std::uint32_t head = head_.load(detail::relaxed);
    return tail_.load(detail::relaxed) - head;
  }
  [[nodiscard]] std::uint32_t head_hint() const noexcept { return head_.load(detail::relaxed); }

 private:
  using Slot = detail::Atomic<fibers::Fiber*>;
  static constexpr std::uint32_t slot_of(std::uint32_t counter) noexcept {
    return counter & (kCapacity - 1);
  }

  alignas(base::kCacheLine) detail::Atomic<std::uint32_t> head_{0};  // written and read by all
  alignas(base::kCacheLine) detail::Atomic<std::uint32_t> tail_{0};  // written by the owner
  // Relaxed: [tail] publishes a slot, [head] gives it back; a stale read dies in the CAS (I3).
  alignas(base::kCacheLine) std::array<Slot, kCapacity> slots_{};
};

// Here, so that the worker's inner loop has them inline.
inline bool RunQueue::push(fibers::Fiber& fiber) noexcept {
  const std::uint32_t tail = tail_.load(detail::relaxed);             // Relaxed: its only writer.
  if (tail - head_.load(detail::acquire) == kCapacity) return false;  // [head]
  slots_[slot_of(tail)].store(&fiber, detail::relaxed);
  tail_.store(tail + 1, detail::release);  // [tail]
  return true;
}

inline fibers::Fiber* RunQueue::pop() noexcept {
  const std::uint32_t tail = tail_.load(detail::relaxed);
  std::uint32_t head = head_.load(detail::relaxed);
  while (head != tail) {
    fibers::Fiber* fiber = slots_[slot_of(head)].load(detail::relaxed);
    if (head_.compare_exchange_weak(head, head + 1, detail::release, detail::relaxed)) {  // [head]
      return fiber;
    }
  }
  return nullptr;
}

}  // namespace weft::scheduler

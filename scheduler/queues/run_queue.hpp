// The ring in which a worker's queue keeps most of its fibers.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <weft/detail/atomic.hpp>
#include <weft/detail/invariant.hpp>

#include "base/cache_line.hpp"

namespace weft::fibers {
struct Fiber;
}

namespace weft::scheduler {

// A FIFO whose owner is one worker; any number of other workers, the thieves, may take fibers. A
// queue that is not shared has no thieves. Its owner moves head_ with plain stores, because a
// compare-exchange would take longer than the rest of a pop.
// Invariants
//   I1  0 <= tail_ - first_of(head_) <= kCapacity, modulo 2^32, except briefly inside withdraw().
//   I2  A slot in [first_of(head_), tail_) holds a runnable fiber that is in no other queue.
//   I3  Only the owner writes slots and tail_; once the queue is shared, any thread may move head_,
//       but only by compare-exchange. Not asserted, because a queue does not store which thread is
//       its owner.
//   I4  Only withdraw() lowers tail_, and withdraw() also gives head_ a value that head_ never had
//       before. Therefore, a thief that read the old tail_ cannot move head_. Not asserted, because
//       the owner has no assertion that could detect a violation. The model checker checks I4
//       instead.
//   I5  A shared queue stays shared; LocalQueue describes how it becomes shared.
// Order
//   [tail]    push() stores tail_ (release) -> take_half() loads it (acquire): take_half() then
//             sees the slot and the fiber.
//   [head]    pop() and take_half() move head_ (release) -> push() and take_half() load it
//             (acquire): each slot before head_ has been read, so push() may overwrite it.
//             withdraw() changes head_ (release) -> take_half() loads it (acquire): take_half()
//             then sees the lower tail_.
class RunQueue {
 public:
  // The capacity is a power of two, so that a mask converts a counter to a slot's index.
  static constexpr std::uint32_t kCapacity = 256;
  // The batch that take_half() fills.
  using Batch = std::array<fibers::Fiber*, kCapacity / 2>;

  explicit RunQueue(bool shared = true) noexcept : shared_(shared) {}

  // Owner only. Returns false if the queue is full.
  [[nodiscard]] bool push(fibers::Fiber& fiber) noexcept;
  // Owner only. Returns the oldest fiber, or nullptr if the queue is empty.
  [[nodiscard]] fibers::Fiber* pop() noexcept;
  // Owner only. Finds the newest fiber, among the last kReach, for which may_be(fiber) is true.
  // Removes and returns it if is_it(fiber) is true and no thief has taken it; otherwise returns
  // nullptr. Newer fibers move into the gap. Also calls `may_be` for fibers that a thief has taken.
  template <class MayBe, class IsIt>
  [[nodiscard]] fibers::Fiber* take_recent(MayBe may_be, IsIt is_it) noexcept;
  // May be called by the owner, and by thieves if the queue is shared. Takes the older half, oldest
  // first, but at most `most` fibers. Returns the number of taken fibers; 0 if the queue is empty
  // or another thread took fibers first.
  [[nodiscard]] std::uint32_t take_half(Batch& batch, std::size_t most = kCapacity) noexcept;

  // From this call on, thieves may take fibers. LocalQueue::try_open() calls it.
  void share() noexcept { shared_.store(true, detail::relaxed); }
  [[nodiscard]] bool is_shared() const noexcept { return shared_.load(detail::relaxed); }

  // The results may be stale.
  [[nodiscard]] std::uint32_t size_hint() const noexcept {
    // Relaxed: the result is only a hint. Because head_ is read first, the difference is never
    // negative, unless the owner is inside withdraw().
    const std::uint32_t first = first_of(head_.load(detail::relaxed));
    return tail_.load(detail::relaxed) - first;
  }
  [[nodiscard]] std::uint32_t head_hint() const noexcept {
    return first_of(head_.load(detail::relaxed));
  }

 private:
  using Slot = detail::Atomic<fibers::Fiber*>;
  // take_recent() examines at most this many fibers, because most forks have fewer children.
  static constexpr std::uint32_t kReach = 16;
  // The amount that withdraw() adds to head_. The lower half of head_ counts the fibers that were
  // taken at the front; the upper half counts withdrawals, and overflows of the lower half.
  static constexpr std::uint64_t kWithdrawal = std::uint64_t{1} << 32;
  static constexpr std::uint32_t first_of(std::uint64_t head) noexcept {
    return static_cast<std::uint32_t>(head);
  }
  static constexpr std::uint32_t slot_of(std::uint32_t counter) noexcept {
    return counter & (kCapacity - 1);
  }

  [[nodiscard]] bool withdraw(std::uint32_t count) noexcept;
  // If head_ has changed, sets `head` to the current value and returns false. [head]
  [[nodiscard]] bool move_head(std::uint64_t& head, std::uint64_t to) noexcept;

  alignas(base::kCacheLine) detail::Atomic<std::uint64_t> head_{0};  // written by owner and thieves
  alignas(base::kCacheLine) detail::Atomic<std::uint32_t> tail_{0};  // written by the owner
  // Relaxed: see share().
  detail::Atomic<bool> shared_;
  // Relaxed: tail_ publishes each slot that the owner writes [tail], and head_ tells the owner
  // which slots it may overwrite [head]. If the owner overwrites a slot that a thief is reading,
  // head_ has changed, so the thief's compare-exchange fails (I3).
  alignas(base::kCacheLine) std::array<Slot, kCapacity> slots_{};
};

// The functions are defined here, so that the compiler inlines them into the worker's inner loop.
inline bool RunQueue::push(fibers::Fiber& fiber) noexcept {
  const std::uint32_t tail = tail_.load(detail::relaxed);  // Relaxed: only the owner writes it.
  const std::uint32_t size = tail - first_of(head_.load(detail::acquire));  // [head]
  WEFT_INVARIANT(size <= kCapacity, "RunQueue I1: the ring holds kCapacity fibers at most");
  if (size == kCapacity) return false;
  slots_[slot_of(tail)].store(&fiber, detail::relaxed);
  tail_.store(tail + 1, detail::release);  // [tail]
  return true;
}

inline bool RunQueue::move_head(std::uint64_t& head, std::uint64_t to) noexcept {
  if (is_shared()) {
    return head_.compare_exchange_weak(head, to, detail::release, detail::relaxed);  // [head]
  }
  head_.store(to, detail::relaxed);  // Relaxed: before share(), only the owner relies on head_.
  return true;
}

inline fibers::Fiber* RunQueue::pop() noexcept {
  const std::uint32_t tail = tail_.load(detail::relaxed);
  std::uint64_t head = head_.load(detail::relaxed);
  while (first_of(head) != tail) {
    fibers::Fiber* fiber = slots_[slot_of(first_of(head))].load(detail::relaxed);
    WEFT_INVARIANT(tail - first_of(head) <= kCapacity, "RunQueue I1: head_ is not ahead of tail_");
    WEFT_INVARIANT(fiber != nullptr, "RunQueue I2: each slot of the queue holds a fiber");
    if (move_head(head, head + 1)) return fiber;
  }
  return nullptr;
}

template <class MayBe, class IsIt>
fibers::Fiber* RunQueue::take_recent(MayBe may_be, IsIt is_it) noexcept {
  const std::uint32_t tail = tail_.load(detail::relaxed);
  const std::uint32_t reach = std::min(size_hint(), kReach);
  for (std::uint32_t back = 1; back <= reach; ++back) {
    fibers::Fiber* fiber = slots_[slot_of(tail - back)].load(detail::relaxed);
    if (!may_be(*fiber)) continue;
    if (!withdraw(back)) return nullptr;
    const bool taken = is_it(*fiber);
    if (taken) {
      for (std::uint32_t i = tail - back; i + 1 != tail; ++i) {
        slots_[slot_of(i)].store(slots_[slot_of(i + 1)].load(detail::relaxed), detail::relaxed);
      }
    }
    tail_.store(taken ? tail - 1 : tail, detail::release);  // [tail]
    return taken ? fiber : nullptr;
  }
  return nullptr;
}

// Withdraws the newest `count` fibers, so that thieves cannot take them. Returns false if thieves
// have taken some of them. A thief reads head_, then tail_, and then tries to replace the value of
// head_ that it has read. If this call changes head_ before the thief reads it, the thief sees the
// lower tail_. If this call changes head_ after that read, the thief's compare-exchange fails. If
// the thief replaces head_ first, this call sees the new value.
inline bool RunQueue::withdraw(std::uint32_t count) noexcept {
  const std::uint32_t tail = tail_.load(detail::relaxed);
  tail_.store(tail - count, detail::relaxed);  // Relaxed: move_head() publishes it [head].
  std::uint64_t head = head_.load(detail::relaxed);
  while (tail - first_of(head) >= count) {
    if (move_head(head, head + kWithdrawal)) return true;
  }
  tail_.store(tail, detail::release);  // [tail]
  return false;
}

}  // namespace weft::scheduler

#include "scheduler/run_queue.hpp"

namespace weft::scheduler {

using detail::acq_rel;
using detail::acquire;
using detail::relaxed;
using detail::release;
using fibers::Fiber;

bool RunQueue::spill_half(Spilled& spilled) noexcept {
  std::uint64_t head = head_.load(acquire);  // [head]
  const std::uint32_t first = first_of(head);
  if (tail_.load(relaxed) - first != kCapacity) return false;
  for (std::uint32_t i = 0; i < spilled.size(); ++i) {
    spilled[i] = slots_[slot_of(first + i)].load(relaxed);
  }
  const auto count = static_cast<std::uint32_t>(spilled.size());
  return head_.compare_exchange_strong(head, head + count, release, relaxed);  // [head]
}

// Tries once: where many thieves meet, each retry would take the line from the owner again.
Fiber* RunQueue::steal_half(RunQueue& into) noexcept {
  const std::uint32_t into_tail = into.tail_.load(relaxed);
  std::uint64_t head = head_.load(acquire);  // [head]
  const std::uint32_t first = first_of(head);
  const std::uint32_t size = tail_.load(acquire) - first;  // [tail]
  // The counters are read at two moments, so they may seem to be too far apart, or to have
  // changed places.
  if (size == 0 || size > kCapacity) return nullptr;
  const std::uint32_t count = size - size / 2;
  for (std::uint32_t i = 0; i < count; ++i) {
    Fiber* fiber = slots_[slot_of(first + i)].load(relaxed);
    into.slots_[slot_of(into_tail + i)].store(fiber, relaxed);
  }
  if (!head_.compare_exchange_strong(head, head + count, acq_rel, relaxed))
    return nullptr;  // [head]
  // The last one moved is run by the thief; the others become visible to other thieves.
  Fiber* to_run = into.slots_[slot_of(into_tail + count - 1)].load(relaxed);
  into.tail_.store(into_tail + count - 1, release);  // [tail]
  return to_run;
}

}  // namespace weft::scheduler

#include "scheduler/queues/run_queue.hpp"

namespace weft::scheduler {

using detail::acquire;
using detail::relaxed;
using detail::release;

// Tries only once, because with many thieves each retry would take the cache line from the owner
// again.
std::uint32_t RunQueue::take_half(Batch& batch, std::size_t most) noexcept {
  std::uint64_t head = head_.load(acquire);  // [head]
  const std::uint32_t first = first_of(head);
  const std::uint32_t size = tail_.load(acquire) - first;  // [tail]
  // The counters are read at different times, so their difference may be too large or negative.
  if (size == 0 || size > kCapacity) return 0;
  const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(size - size / 2, most));
  for (std::uint32_t i = 0; i < count; ++i) batch[i] = slots_[slot_of(first + i)].load(relaxed);
  return head_.compare_exchange_strong(head, head + count, release, relaxed) ? count : 0;  // [head]
}

}  // namespace weft::scheduler

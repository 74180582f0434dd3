// Many tasks in one call.
#include <weft/detail/pool_batch.hpp>

#include "pool/pool_core.hpp"

namespace weft::pool {

using detail::PoolItem;

// An item that needs more than a place in the queue goes the way of a single one, and then the
// next ones are pushed again.
std::size_t PoolCore::submit_bulk(std::span<PoolItem> items) {
  for (PoolItem& item : items) stamp(item);
  std::size_t accepted = 0;
  for (;;) {
    accepted += push_some(items.subspan(accepted));
    if (accepted == items.size() || submit(items[accepted], options_.on_full, {})) return accepted;
    ++accepted;
  }
}

// Accepts as many of the first items as need nothing but a push, under one hold of the lock.
std::size_t PoolCore::push_some(std::span<PoolItem> items) noexcept {
  WakeChain wakes;
  std::size_t pushed = 0;
  lock_.lock();
  while (pushed < items.size() && needs_only_push(items[pushed])) {
    book(items[pushed]);
    ++pushed;
    if (queue_wants_worker()) wakes.add(call_idle());
  }
  lock_.unlock();
  wakes.wake_all();
  return pushed;
}

// Requires lock_. Of an item without terms: what accept_if_room() asks before its push.
bool PoolCore::needs_only_push(const PoolItem& item) const noexcept {
  return !closed_ && !item.empty() && has_room() && blocked_.empty() &&
         !must_grow(queue_.startable_with(item)) && queue_.has_room_for(item);
}

}  // namespace weft::pool

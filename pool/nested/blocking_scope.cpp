// Releases the slots of a task while it waits.
//
// A task that waits for its own pool would hold a slot that the awaited task may need. In a pool
// with a capacity of 1, the task would wait forever. The task therefore gives the slot back, and
// does not count as running. After its wait, it takes a free slot, or the next slot that becomes
// free, before queued tasks. At most `capacity` tasks run at any time, and the queue never exceeds
// its capacity. A task with a weight above 1 gives back all its slots, and later takes the same
// number in one step. While the task waits for these slots, no other task starts, and the room for
// new tasks is reduced by that number. Otherwise light tasks could keep this task waiting.
#include <weft/detail/blocking_scope.hpp>
#include <weft/detail/pool_job.hpp>

#include "pool/core/pool_core.hpp"
#include "pool/nested/worker_registry.hpp"

namespace weft::detail {

namespace {

// Visits the slots from the innermost pool to the outermost. In this order, a task may wait for a
// slot of the parent pool while it holds one of the sub-pool, but never the reverse. A drain task,
// which holds a slot of the parent, never waits for a slot of the sub-pool, because it takes a task
// only if such a slot is free. The waits therefore form no cycle.
template <class Action>
void for_each_slot(pool::Registration* innermost, Action action) {
  for (auto* entry = innermost; entry != nullptr; entry = entry->outer()) {
    if (entry->core().options().release_when_blocked) action(*entry);
  }
}

// If the caller is a task of a pool whose root is `root`, returns the caller's innermost
// registration that has a slot. Returns null otherwise. A worker that is destroying its tasks'
// FiberLocal values has no slot. The function removes such a worker from the pool, because the
// awaited task may need another worker.
pool::Registration* slots_of(pool::Registration* entry, const pool::PoolCore* root) noexcept {
  while (entry != nullptr && !entry->may_release()) {
    const bool may_give_up = entry->is_clearing() && &entry->core() == root;
    if (may_give_up && root->options().release_when_blocked) entry->give_place_up();
    entry = entry->outer();
  }
  return entry != nullptr && &entry->core().root() == root ? entry : nullptr;
}

}  // namespace

BlockingScope::BlockingScope(const pool::PoolCore* root) noexcept
    : BlockingScope(root, pool::Registration::of_caller()) {}

BlockingScope::BlockingScope(const pool::PoolCore* root, pool::Registration* of_caller) noexcept
    : slots_(slots_of(of_caller, root)) {
  for_each_slot(slots_, [](pool::Registration& task) { task.begin_wait(); });
}

BlockingScope::~BlockingScope() {
  for_each_slot(slots_, [](pool::Registration& task) { task.end_wait(); });
}

bool PoolJob::wait_until(const Until& until) noexcept {
  lock_.lock();
  const bool over_already = ready();
  lock_.unlock();
  return over_already || wait_until(until, pool::Registration::of_caller());
}

bool PoolJob::wait_until(const Until& until, pool::Registration* of_caller) noexcept {
  const BlockingScope scope(root_, of_caller);
  lock_.lock();
  if (ready()) {
    lock_.unlock();
    return true;
  }
  Waiter self;
  return wait_in_until(waiters_, lock_, self, WaitReason::pool_wait, until) == Claim::kNotifier;
}

}  // namespace weft::detail

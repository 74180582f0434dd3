#include "pool/nested/worker_registry.hpp"

#include <weft/detail/local_node.hpp>

#include "pool/core/pool_core.hpp"
#include "pool/queue/task_queue.hpp"

namespace weft::pool {

using detail::LocalNode;

// The list does not own the registration's memory.
Registration::Registration(PoolCore& core, const detail::PoolItem& running, Slot slot,
                           Registration* outer) noexcept
    : LocalNode{detail::locals(), detail::kPoolTaskKey, [](LocalNode*) noexcept {}},
      core_(core),
      running_(running),
      slot_(slot),
      outer_(outer) {
  detail::locals() = this;
}

// FiberLocal values that were created later precede this node in the list. If the caller's
// FiberLocal values have all been destroyed, their destruction has also removed this node from the
// list.
Registration::~Registration() {
  LocalNode** link = &detail::locals();
  while (*link != nullptr && *link != this) link = &(*link)->next;
  if (*link != nullptr) *link = next;
}

WorkerObjects Registration::make_objects() noexcept { return {detail::locals(), this}; }
bool Registration::is_clearing() const noexcept {
  return objects_ != nullptr && objects_->is_clearing();
}
void Registration::give_place_up() noexcept {
  objects_->give_place_up();
  slot_ = Slot::none;
  core_.change([](PoolState& state) {
    state.counters.clears_without_place = true;
    state.workers.leave_clearing();
  });
}

std::size_t Registration::weight() const noexcept {
  return weight_of_drain_ != 0 ? weight_of_drain_ : TaskQueue::weight_of(running_);
}

Registration* Registration::of_caller() noexcept {
  return static_cast<Registration*>(detail::BehalfScope::task_of_caller());
}

bool Registration::may_lend_slot() const noexcept {
  if (weight() != 1 || !core_.options().release_when_blocked) return false;
  const LocalNode* node = detail::locals();
  while (node != nullptr && node != this) node = node->next;
  return node != nullptr;
}

bool Registration::try_lend_slot() noexcept WEFT_NOT_ANALYZED {
  if (!may_lend_slot()) return false;
  core_.lock();
  const bool lends = has_slot() && lent_ == Lent::no;
  if (lends) ++waits_;
  core_.unlock();
  return lends;
}

void Registration::end_lending() noexcept WEFT_NOT_ANALYZED {
  core_.lock();
  if (--waits_ == 0 || lent_ != Lent::no) return core_.unlock();
  release_slots();  // Meanwhile, another fiber of the task has begun to wait.
}

void Registration::begin_wait() noexcept WEFT_NOT_ANALYZED {
  if (slot_ != Slot::held) return;
  core_.lock();
  if (waits_++ > 0 || lent_ != Lent::no) return core_.unlock();
  release_slots();
}

void Registration::end_wait() noexcept WEFT_NOT_ANALYZED {
  if (slot_ != Slot::held) return;
  core_.lock();
  if (--waits_ > 0 || lent_ != Lent::yes) return core_.unlock();
  lent_ = Lent::until_reacquired;
  core_.unlock();
  core_.reacquire_slots(weight());
  core_.lock();
  lent_ = Lent::no;
  if (waits_ == 0) return core_.unlock();
  release_slots();  // Meanwhile, a fiber of the task has begun to wait.
}

void Registration::release_slots() noexcept WEFT_NOT_ANALYZED {
  lent_ = Lent::yes;
  core_.state().release(weight());
  core_.match_up();
}

bool called_from_worker_of(const PoolCore* core) noexcept {
  const Registration* entry = Registration::of_caller();
  while (entry != nullptr && &entry->core() != core) entry = entry->outer();
  return entry != nullptr;
}

}  // namespace weft::pool

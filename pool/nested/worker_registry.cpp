#include "pool/nested/worker_registry.hpp"

#include <weft/detail/waist.hpp>

#include "pool/core/pool_core.hpp"
#include "pool/queue/task_queue.hpp"

namespace weft::pool {

using detail::LocalNode;

// Made at first use: a pool may be made before this file's variables.
std::uint64_t Registration::key_of_all() noexcept {
  static const std::uint64_t key = detail::new_local_key();
  return key;
}

// Its memory is not the list's.
Registration::Registration(PoolCore& core, const detail::PoolItem& running, Slot slot,
                           Registration* outer) noexcept
    : LocalNode{detail::locals(), key_of_all(), [](LocalNode*) noexcept {}},
      core_(core),
      running_(running),
      slot_(slot),
      outer_(outer) {
  detail::locals() = this;
}

// Values that tasks have made since stand before it. If a worker has destroyed them all, they are
// gone, and so is this.
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
  core_.change([](PoolState& state) { state.workers.leave_clearing(); });
}

std::size_t Registration::weight() const noexcept {
  return weight_of_drain_ != 0 ? weight_of_drain_ : TaskQueue::weight_of(running_);
}

Registration* Registration::of_caller() noexcept {
  LocalNode* node = detail::locals();
  while (node != nullptr && node->key != key_of_all()) node = node->next;
  return static_cast<Registration*>(node);
}

bool called_from_worker_of(const PoolCore* core) noexcept {
  const Registration* entry = Registration::of_caller();
  while (entry != nullptr && &entry->core() != core) entry = entry->outer();
  return entry != nullptr;
}

}  // namespace weft::pool

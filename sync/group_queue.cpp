#include <weft/detail/group_queue.hpp>

#include <memory>
#include <utility>
#include <weft/detail/invariant.hpp>

namespace weft::detail {

GroupScope::GroupScope(const GroupQueue& of_group) noexcept
    : LocalScope(kGroupKey), of_group_(of_group) {}

const GroupQueue* GroupScope::current() noexcept {
  const LocalScope* scope = innermost(kGroupKey);
  return scope == nullptr ? nullptr : &static_cast<const GroupScope*>(scope)->of_group_;
}

GroupQueue::GroupQueue(Semaphore& places) noexcept
    : places_(places), enclosing_(GroupScope::current()) {}

bool GroupQueue::is_around_caller() const noexcept {
  const GroupQueue* group = GroupScope::current();
  while (group != nullptr && group != this) group = group->enclosing_;
  return group != nullptr;
}

GroupQueue::Push GroupQueue::push(std::unique_ptr<QueuedTask>& task) noexcept {
  const SpinGuard guard(lock_);
  WEFT_INVARIANT(first_ == nullptr || runners_ > 0, "GroupQueue I2: queued tasks have a runner");
  if (places_.try_acquire()) return Push::has_place;
  if (runners_ == 0) return Push::no_runner;
  QueuedTask* const added = task.get();
  (first_ == nullptr ? first_ : last_->next_) = std::move(task);
  last_ = added;
  return Push::queued;
}

void GroupQueue::add_runner() noexcept {
  const SpinGuard guard(lock_);
  ++runners_;
}

std::unique_ptr<QueuedTask> GroupQueue::next() noexcept {
  {
    const SpinGuard guard(lock_);
    WEFT_INVARIANT(runners_ > 0, "GroupQueue I1: a runner is counted");
    if (first_ != nullptr) return pop();
    --runners_;
  }
  places_.release();
  const SpinGuard guard(lock_);
  if (first_ == nullptr || !places_.try_acquire()) return nullptr;
  ++runners_;
  return pop();
}

std::unique_ptr<QueuedTask> GroupQueue::pop() noexcept {
  std::unique_ptr<QueuedTask> task = std::move(first_);
  first_ = std::move(task->next_);
  return task;
}

}  // namespace weft::detail

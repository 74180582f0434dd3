#include "pool/queue/task_queue.hpp"

#include <utility>
#include <weft/detail/invariant.hpp>

namespace weft::pool {

using detail::PoolItem;

// ---- AttributesList

void AttributesList::push_back(Attributes& attributes) noexcept {
  attributes.next = nullptr;
  attributes.previous = last_;
  (last_ == nullptr ? first_ : last_->next) = &attributes;
  last_ = &attributes;
}

void AttributesList::erase(Attributes& attributes) noexcept {
  (attributes.previous == nullptr ? first_ : attributes.previous->next) = attributes.next;
  (attributes.next == nullptr ? last_ : attributes.next->previous) = attributes.previous;
}

// ---- PriorityLevel

void PriorityLevel::insert(Attributes& attributes) noexcept {
  const Attributes* const last = list_.back();
  if (last == nullptr || last->number < attributes.number) return list_.push_back(attributes);
  attributes.next = nullptr;
  attributes.previous = nullptr;
  attributes.rank = 1;
  late_ = merged(late_, &attributes);
}

void PriorityLevel::pop_front() noexcept {
  Attributes& first = *front();
  if (&first != late_) return list_.erase(first);
  late_ = merged(first.next, first.previous);
}

// Recurses down the right spines, whose length is logarithmic.
PriorityLevel::Attributes* PriorityLevel::merged(Attributes* left, Attributes* right) noexcept {
  if (left == nullptr) return right;
  if (right == nullptr) return left;
  if (right->number < left->number) std::swap(left, right);
  left->previous = merged(left->previous, right);
  const auto rank_of = [](const Attributes* attributes) {
    return attributes == nullptr ? 0 : attributes->rank;
  };
  if (rank_of(left->next) < rank_of(left->previous)) std::swap(left->next, left->previous);
  left->rank = rank_of(left->previous) + 1;
  WEFT_INVARIANT(is_older(*left, left->next) && is_older(*left, left->previous),
                 "PriorityLevel I1: no task is younger than its children");
  WEFT_INVARIANT(rank_of(left->next) >= rank_of(left->previous),
                 "PriorityLevel I2: the way to the left is no shorter");
  return left;
}

// ---- Coming in

void TaskQueue::push_attributed(Attributes& attributes) noexcept {
  attributes.job->note_accepted();
  attributes.number = ++accepted_;
  attributes.plain_before = plain_.pushed();
  attributes.next_of_key = nullptr;
  attributes.last_of_key = nullptr;
  Attributes* const holder = attributes.key.is_set() ? keys_.find(attributes.key) : nullptr;
  if (holder != nullptr) {
    Attributes* const last = std::exchange(holder->last_of_key, &attributes);
    (last == nullptr ? holder : last)->next_of_key = &attributes;
    held_up_.push_back(attributes);
    ++held_up_size_;
    held_up_weight_ += attributes.weight;
    return;
  }
  if (attributes.key.is_set()) keys_.insert(attributes);
  list(attributes);
}

void TaskQueue::list(Attributes& attributes) noexcept {
  levels_[static_cast<std::size_t>(attributes.priority)].insert(attributes);
  ++listed_;
}

TaskQueue::Demand TaskQueue::demand_for(const PoolItem& item) const noexcept {
  if (attributes_of(item) == nullptr) return {.segment_size = plain_.next_segment_size()};
  return {.bucket_count = keys_.next_count()};
}

TaskQueue::Memory TaskQueue::make_memory(const Demand& demand) noexcept {
  if (demand.bucket_count > 0) return {nullptr, KeyTable::make_buckets(demand.bucket_count)};
  return {SegmentQueue::make_segment(demand.segment_size), {}};
}

TaskQueue::Memory TaskQueue::add(Memory memory) noexcept {
  if (memory.segments != nullptr) return {plain_.add(std::move(memory.segments)), {}};
  return {nullptr, keys_.adopt(std::move(memory.buckets))};
}

// ---- Going out

std::size_t TaskQueue::next_level() const noexcept {
  std::size_t highest = 0;
  while (!has_tasks(highest)) ++highest;
  // Checks the lowest level first. Therefore, a middle level may be passed over more than kPatience
  // times, but only in favor of the lowest level.
  for (std::size_t level = kLevels - 1; level > highest; --level) {
    if (passed_over_[level] >= kPatience && has_tasks(level)) return level;
  }
  return highest;
}

TaskQueue::Attributes* TaskQueue::first_of(std::size_t level) const noexcept {
  Attributes* const first = levels_[level].front();
  if (level != kNormal || (first != nullptr && is_older_than_plain(*first))) return first;
  return nullptr;
}

std::size_t TaskQueue::weight_of_next_listed() const noexcept {
  const Attributes* first = first_of(next_level());
  return first == nullptr ? 1 : first->weight;
}

void TaskQueue::pop_listed(PoolItem& item) noexcept {
  const std::size_t level = next_level();
  passed_over_[level] = 0;
  for (std::size_t lower = level + 1; lower < kLevels; ++lower) {
    if (has_tasks(lower)) ++passed_over_[lower];
  }
  Attributes* const first = first_of(level);
  if (first == nullptr) return plain_.pop(item);
  unlist(*first);
  item.job = first->job;
  item.submitted_at = first->submitted_at;
}

void TaskQueue::unlist(Attributes& attributes) noexcept {
  levels_[static_cast<std::size_t>(attributes.priority)].pop_front();
  --listed_;
}

TaskQueue::Attributes* TaskQueue::oldest_attributed() const noexcept {
  Attributes* oldest = held_up_.front();
  for (const PriorityLevel& level : levels_) {
    Attributes* const first = level.front();
    if (first != nullptr && (oldest == nullptr || first->number < oldest->number)) oldest = first;
  }
  return oldest != nullptr && is_older_than_plain(*oldest) ? oldest : nullptr;
}

void TaskQueue::pop_oldest(PoolItem& item) noexcept {
  Attributes* const oldest = oldest_attributed();
  if (oldest == nullptr) return plain_.pop(item);
  if (oldest == held_up_.front()) {
    take_held_up(*oldest);
  } else {
    unlist(*oldest);
    if (oldest->key.is_set()) pass_on_key(*oldest);
  }
  item.job = oldest->job;
}

void TaskQueue::pop_oldest_held_up(PoolItem& item) noexcept {
  Attributes& oldest = *held_up_.front();
  take_held_up(oldest);
  item.job = oldest.job;
}

// Called when no other task holds up this task any longer.
void TaskQueue::release(Attributes& attributes) noexcept {
  WEFT_INVARIANT(held_up_size_ > 0, "TaskQueue I1: a task that is held up is counted");
  held_up_.erase(attributes);
  --held_up_size_;
  held_up_weight_ -= attributes.weight;
}

// Requires that the task is the oldest held-up task, which is the first in the chain of its key.
void TaskQueue::take_held_up(Attributes& attributes) noexcept {
  Attributes& holder = *keys_.find(attributes.key);
  WEFT_INVARIANT(holder.next_of_key == &attributes,
                 "TaskQueue I1: a held-up task is in the chain of its key");
  holder.next_of_key = attributes.next_of_key;
  if (holder.last_of_key == &attributes) holder.last_of_key = nullptr;
  release(attributes);
}

void TaskQueue::pass_on_key(Attributes& attributes) noexcept {
  WEFT_INVARIANT(keys_.find(attributes.key) == &attributes, "TaskQueue I1: the task holds its key");
  Attributes* const heir = attributes.next_of_key;
  if (heir == nullptr) return keys_.erase(attributes);
  heir->last_of_key = attributes.last_of_key == heir ? nullptr : attributes.last_of_key;
  keys_.replace(attributes, *heir);
  release(*heir);
  list(*heir);
}

void TaskQueue::move_all_to(TaskQueue& other) noexcept {
  for (Attributes* attributes = held_up_.front(); attributes != nullptr;
       attributes = attributes->next) {
    Attributes& holder = *keys_.find(attributes->key);
    holder.next_of_key = nullptr;
    holder.last_of_key = nullptr;
  }
  for (std::size_t i = 0; i < kLevels; ++i) {
    while (Attributes* attributes = levels_[i].front()) {
      levels_[i].pop_front();
      if (attributes->key.is_set()) keys_.erase(*attributes);
      other.levels_[i].insert(*attributes);
    }
  }
  plain_.swap(other.plain_);
  std::swap(held_up_, other.held_up_);
  std::swap(listed_, other.listed_);
  std::swap(held_up_size_, other.held_up_size_);
  std::swap(held_up_weight_, other.held_up_weight_);
  passed_over_ = {};
}

TaskQueue::~TaskQueue() {
  for (PriorityLevel& level : levels_) {
    while (Attributes* attributes = level.front()) {
      level.pop_front();
      const PoolItem dropped(*attributes->job);
    }
  }
  while (Attributes* attributes = held_up_.front()) {
    held_up_.erase(*attributes);
    const PoolItem dropped(*attributes->job);
  }
}

}  // namespace weft::pool

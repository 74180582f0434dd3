#include "pool/queue/task_queue.hpp"

#include <utility>

namespace weft::pool {

using detail::PoolItem;

// ---- AttributesList

void AttributesList::push_back(Terms& terms) noexcept {
  terms.next = nullptr;
  terms.previous = last_;
  (last_ == nullptr ? first_ : last_->next) = &terms;
  last_ = &terms;
}

void AttributesList::erase(Terms& terms) noexcept {
  (terms.previous == nullptr ? first_ : terms.previous->next) = terms.next;
  (terms.next == nullptr ? last_ : terms.next->previous) = terms.previous;
}

// ---- PriorityLevel

void PriorityLevel::insert(Terms& terms) noexcept {
  const Terms* const last = list_.back();
  if (last == nullptr || last->number < terms.number) return list_.push_back(terms);
  terms.next = nullptr;
  terms.previous = nullptr;
  terms.rank = 1;
  late_ = merged(late_, &terms);
}

void PriorityLevel::pop_front() noexcept {
  Terms& first = *front();
  if (&first != late_) return list_.erase(first);
  late_ = merged(first.next, first.previous);
}

// Recurses down the ways to the right, which are logarithms long.
PriorityLevel::Terms* PriorityLevel::merged(Terms* left, Terms* right) noexcept {
  if (left == nullptr) return right;
  if (right == nullptr) return left;
  if (right->number < left->number) std::swap(left, right);
  left->previous = merged(left->previous, right);
  const auto rank_of = [](const Terms* terms) { return terms == nullptr ? 0 : terms->rank; };
  if (rank_of(left->next) < rank_of(left->previous)) std::swap(left->next, left->previous);
  left->rank = rank_of(left->previous) + 1;
  return left;
}

// ---- Coming in

void TaskQueue::push_terms(Terms& terms) noexcept {
  terms.number = ++accepted_;
  terms.plain_before = plain_.pushed();
  terms.next_of_key = nullptr;
  terms.last_of_key = nullptr;
  Terms* const holder = terms.key.is_set() ? keys_.find(terms.key) : nullptr;
  if (holder != nullptr) {
    Terms* const last = std::exchange(holder->last_of_key, &terms);
    (last == nullptr ? holder : last)->next_of_key = &terms;
    held_up_.push_back(terms);
    ++held_up_size_;
    held_up_weight_ += terms.weight;
    return;
  }
  if (terms.key.is_set()) keys_.insert(terms);
  list(terms);
}

void TaskQueue::list(Terms& terms) noexcept {
  levels_[static_cast<std::size_t>(terms.priority)].insert(terms);
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
  // The lowest first: the next one in between is passed over for a lower one then, not a higher.
  for (std::size_t level = kLevels - 1; level > highest; --level) {
    if (passed_over_[level] >= kPatience && has_tasks(level)) return level;
  }
  return highest;
}

TaskQueue::Terms* TaskQueue::first_of(std::size_t level) const noexcept {
  Terms* const first = levels_[level].front();
  if (level != kNormal || (first != nullptr && is_older_than_plain(*first))) return first;
  return nullptr;
}

std::size_t TaskQueue::weight_of_next_listed() const noexcept {
  const Terms* first = first_of(next_level());
  return first == nullptr ? 1 : first->weight;
}

void TaskQueue::pop_listed(PoolItem& item) noexcept {
  const std::size_t level = next_level();
  passed_over_[level] = 0;
  for (std::size_t lower = level + 1; lower < kLevels; ++lower) {
    if (has_tasks(lower)) ++passed_over_[lower];
  }
  Terms* const first = first_of(level);
  if (first == nullptr) return plain_.pop(item);
  unlist(*first);
  item.job = first->job;
  item.submitted_at = first->submitted_at;
}

void TaskQueue::unlist(Terms& terms) noexcept {
  levels_[static_cast<std::size_t>(terms.priority)].pop_front();
  --listed_;
}

TaskQueue::Terms* TaskQueue::oldest_with_terms() const noexcept {
  Terms* oldest = held_up_.front();
  for (const PriorityLevel& level : levels_) {
    Terms* const first = level.front();
    if (first != nullptr && (oldest == nullptr || first->number < oldest->number)) oldest = first;
  }
  return oldest != nullptr && is_older_than_plain(*oldest) ? oldest : nullptr;
}

void TaskQueue::pop_oldest(PoolItem& item) noexcept {
  Terms* const oldest = oldest_with_terms();
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
  Terms& oldest = *held_up_.front();
  take_held_up(oldest);
  item.job = oldest.job;
}

// One that was held up is no longer.
void TaskQueue::release(Terms& terms) noexcept {
  held_up_.erase(terms);
  --held_up_size_;
  held_up_weight_ -= terms.weight;
}

// The oldest of all that are held up is the first in the chain of its key.
void TaskQueue::take_held_up(Terms& terms) noexcept {
  Terms& holder = *keys_.find(terms.key);
  holder.next_of_key = terms.next_of_key;
  if (holder.last_of_key == &terms) holder.last_of_key = nullptr;
  release(terms);
}

void TaskQueue::pass_on_key(Terms& terms) noexcept {
  Terms* const heir = terms.next_of_key;
  if (heir == nullptr) return keys_.erase(terms);
  heir->last_of_key = terms.last_of_key == heir ? nullptr : terms.last_of_key;
  keys_.replace(terms, *heir);
  release(*heir);
  list(*heir);
}

void TaskQueue::move_all_to(TaskQueue& other) noexcept {
  for (Terms* terms = held_up_.front(); terms != nullptr; terms = terms->next) {
    Terms& holder = *keys_.find(terms->key);
    holder.next_of_key = nullptr;
    holder.last_of_key = nullptr;
  }
  for (std::size_t i = 0; i < kLevels; ++i) {
    while (Terms* terms = levels_[i].front()) {
      levels_[i].pop_front();
      if (terms->key.is_set()) keys_.erase(*terms);
      other.levels_[i].insert(*terms);
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
    while (Terms* terms = level.front()) {
      level.pop_front();
      const PoolItem dropped(*terms->job);
    }
  }
  while (Terms* terms = held_up_.front()) {
    held_up_.erase(*terms);
    const PoolItem dropped(*terms->job);
  }
}

}  // namespace weft::pool

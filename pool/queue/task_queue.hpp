// A pool's accepted tasks that have not started, and the order in which they start.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <weft/detail/invariant.hpp>
#include <weft/detail/pool_job.hpp>
#include <weft/detail/task_attributes.hpp>

#include "pool/queue/key_table.hpp"
#include "pool/queue/segment_queue.hpp"

namespace weft::pool {

// A list of tasks that have attributes, in the order in which the tasks arrived. Any task can be
// removed. The links are in the attributes.
class AttributesList {
 public:
  using Attributes = detail::TaskAttributes;

  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  [[nodiscard]] Attributes* front() const noexcept { return first_; }
  [[nodiscard]] Attributes* back() const noexcept { return last_; }
  void push_back(Attributes& attributes) noexcept;
  void erase(Attributes& attributes) noexcept;

 private:
  Attributes* first_ = nullptr;
  Attributes* last_ = nullptr;
};

// Keeps tasks that have attributes, in the order of their acceptance. Only the first task can be
// taken.
//
// Most tasks arrive in the order of their acceptance, and form a list. A task may arrive late
// because another task held its key. Late tasks are in a leftist heap that uses the links of the
// list (left is `next`, right is `previous`). The cost of a late task is therefore logarithmic in
// the number of late tasks, and no list has to be searched.
// Invariants
//   I1  Each task in the heap is older than its children.
//   I2  rank is the length of the right spine. A left child's rank is at least its sibling's.
class PriorityLevel {
 public:
  using Attributes = detail::TaskAttributes;

  [[nodiscard]] bool empty() const noexcept { return late_ == nullptr && list_.empty(); }
  // Returns the oldest task; null if there is none.
  [[nodiscard]] Attributes* front() const noexcept {
    Attributes* const first = list_.front();
    return late_ == nullptr || (first != nullptr && first->number < late_->number) ? first : late_;
  }
  void insert(Attributes& attributes) noexcept;
  // Requires that the level is not empty.
  void pop_front() noexcept;

 private:
  [[nodiscard]] static bool is_older(const Attributes& one, const Attributes* other) noexcept {
    return other == nullptr || one.number < other->number;
  }
  [[nodiscard]] static Attributes* merged(Attributes* left, Attributes* right) noexcept;

  AttributesList list_;
  Attributes* late_ = nullptr;
};

// Plain tasks (without attributes) wait in a queue of items. Tasks with attributes wait in lists,
// one for each priority; tasks that wait until another task with the same key ends are in an extra
// list. Plain tasks have normal priority. Startable tasks of the same priority start in the order
// of their acceptance. The owner's lock guards the queue.
// Invariants
//   I1  A task that is held up is in held_up_ and in the chain of the task that holds its key. The
//       holder is in one of the other lists, or is running. When the holder ends, or is dropped,
//       the next task in its chain becomes the holder.
//   I2  plain_ satisfies the invariants of SegmentQueue. A task with attributes needs no memory in
//       the queue, except the first buckets of keys_.
class TaskQueue {
 public:
  using Attributes = detail::TaskAttributes;

  TaskQueue() noexcept = default;
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;
  // Drops the remaining tasks.
  ~TaskQueue();

  // Sets the size of the first ring for plain tasks, so that it has room for `items`. Tasks with
  // attributes need no ring.
  void begin_with(std::size_t items) noexcept { plain_.begin_with(items); }

  [[nodiscard]] std::size_t size() const noexcept {
    return plain_.size() + listed_ + held_up_size_;
  }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  // Returns the number of tasks that are not held up by another task.
  [[nodiscard]] std::size_t startable() const noexcept { return plain_.size() + listed_; }
  // Returns what startable() would return after push(item).
  [[nodiscard]] std::size_t startable_with(const detail::PoolItem& item) const noexcept {
    return would_be_held_up(item) ? startable() : startable() + 1;
  }
  // Returns whether another task holds the key of `item`.
  [[nodiscard]] bool would_be_held_up(const detail::PoolItem& item) const noexcept {
    const Attributes* attributes = attributes_of(item);
    return attributes != nullptr && is_held(attributes->key);
  }
  [[nodiscard]] bool is_held(const TaskKey& key) const noexcept {
    return key.is_set() && keys_.find(key) != nullptr;
  }
  // Returns the total weight of the tasks that are held up by other tasks.
  [[nodiscard]] std::size_t held_up_weight() const noexcept { return held_up_weight_; }

  // Returns null for a plain task.
  [[nodiscard]] static Attributes* attributes_of(const detail::PoolItem& item) noexcept {
    return item.job == nullptr ? nullptr : item.job->attributes();
  }
  [[nodiscard]] static std::size_t weight_of(const detail::PoolItem& item) noexcept {
    const Attributes* attributes = attributes_of(item);
    return attributes == nullptr ? 1 : attributes->weight;
  }
  [[nodiscard]] static bool is_drain(const detail::PoolItem& item) noexcept {
    return item.job != nullptr && item.job->is_drain();
  }
  [[nodiscard]] static bool has_key(const detail::PoolItem& item) noexcept {
    const Attributes* attributes = attributes_of(item);
    return attributes != nullptr && attributes->key.is_set();
  }

  // Returns whether push(item) is possible now, without an allocation.
  [[nodiscard]] bool has_room_for(const detail::PoolItem& item) const noexcept {
    const Attributes* attributes = attributes_of(item);
    if (attributes == nullptr) [[likely]]
      return plain_.has_room();
    return !attributes->key.is_set() || !keys_.is_crowded();
  }
  [[nodiscard]] bool has_room_for_plain() const noexcept { return plain_.has_room(); }
  // Returns whether popping the queued tasks would make room for `item`, if no other task is
  // pushed.
  [[nodiscard]] bool will_have_room_for(const detail::PoolItem& item) const noexcept {
    const Attributes* attributes = attributes_of(item);
    if (attributes == nullptr) return plain_.each_pop_makes_room();
    return !attributes->key.is_set() || keys_.has_buckets();
  }
  // Returns whether push(item) is possible now. Requires that has_room_for(item) or
  // will_have_room_for(item) has already returned true.
  [[nodiscard]] bool can_push(const detail::PoolItem& item) const noexcept {
    return attributes_of(item) != nullptr || plain_.has_room();
  }
  // Returns whether push(item) will be possible after pop_oldest().
  [[nodiscard]] bool can_replace_oldest(const detail::PoolItem& item) const noexcept {
    if (attributes_of(item) != nullptr) return has_room_for(item);
    return plain_.has_room() || (plain_.each_pop_makes_room() && oldest_attributed() == nullptr);
  }
  // Does the same as push(), for a task without attributes. Requires that has_room_for_plain()
  // returns true.
  void push_plain(detail::PoolItem&& item) noexcept { plain_.push(std::move(item)); }
  // Requires that can_push() returns true.
  void push(detail::PoolItem&& item) noexcept {
    WEFT_INVARIANT(can_push(item), "TaskQueue I2: a plain task has room, others need none");
    if (Attributes* attributes = attributes_of(item)) [[unlikely]] {
      item.job = nullptr;
      attributes->submitted_at = item.submitted_at;
      push_attributed(*attributes);
    } else {
      plain_.push(std::move(item));
    }
  }

  // Returns the weight of the next task. Requires that a task is startable.
  [[nodiscard]] std::size_t next_weight() const noexcept {
    if (listed_ == 0) [[likely]]
      return 1;
    return weight_of_next_listed();
  }
  // Returns whether there are startable tasks, and all of them are plain.
  [[nodiscard]] bool has_only_plain() const noexcept { return listed_ == 0 && !plain_.empty(); }
  // Does the same as pop(). Requires that has_only_plain() returns true.
  void pop_plain(detail::PoolItem& item) noexcept { plain_.pop(item); }
  // Moves the next task into `item`, which must be empty. Requires that a task is startable.
  void pop(detail::PoolItem& item) noexcept {
    if (listed_ == 0) [[likely]]
      return plain_.pop(item);
    pop_listed(item);
  }
  // Moves the task that was accepted first, startable or not, into `item`. Requires that the queue
  // is not empty.
  void pop_oldest(detail::PoolItem& item) noexcept;
  // Moves the oldest held-up task into `item`. Requires that a task is held up.
  void pop_oldest_held_up(detail::PoolItem& item) noexcept;
  // Called when a task with a key has ended or will never run. The next task with that key may then
  // start.
  void pass_on_key(Attributes& attributes) noexcept;

  // Returns the number of drain tasks, which have no attributes.
  [[nodiscard]] std::size_t count_drains() noexcept { return plain_.count(&is_drain); }
  // Moves all tasks to `other`, which must be empty. Running tasks that hold a key keep it.
  void move_all_to(TaskQueue& other) noexcept;

  // Additional memory, allocated outside the lock after has_room_for(item) or
  // will_have_room_for(item) has returned false.
  struct Memory {
    SegmentQueue::Segments segments;
    KeyTable::Buckets buckets;
    [[nodiscard]] bool empty() const noexcept {
      return segments == nullptr && buckets.first == nullptr;
    }
  };
  struct Demand {
    std::size_t segment_size = 0;
    std::size_t bucket_count = 0;
  };
  [[nodiscard]] Demand demand_for(const detail::PoolItem& item) const noexcept;
  // Returns an empty value if no memory is available.
  [[nodiscard]] static Memory make_memory(const Demand& demand) noexcept;
  // Adds the memory. Returns what the queue does not need; the caller must free it outside the
  // lock.
  [[nodiscard]] Memory add(Memory memory) noexcept;
  [[nodiscard]] Memory trim() noexcept { return {plain_.trim(), {}}; }

 private:
  static constexpr std::size_t kLevels = 3;
  static constexpr std::size_t kNormal = static_cast<std::size_t>(Priority::normal);
  // A level that has tasks may be passed over for a higher level at most this many times in a row.
  static constexpr unsigned kPatience = 16;

  [[nodiscard]] bool has_tasks(std::size_t level) const noexcept {
    return !levels_[level].empty() || (level == kNormal && !plain_.empty());
  }
  [[nodiscard]] std::size_t next_level() const noexcept;
  // Requires that the level has tasks. Returns the level's first task, or null if that task has no
  // attributes.
  [[nodiscard]] Attributes* first_of(std::size_t level) const noexcept;
  [[nodiscard]] bool is_older_than_plain(const Attributes& attributes) const noexcept {
    return plain_.empty() || attributes.plain_before <= plain_.popped();
  }
  void push_attributed(Attributes& attributes) noexcept;
  void list(Attributes& attributes) noexcept;
  // Requires that the task is the first of its level.
  void unlist(Attributes& attributes) noexcept;
  void release(Attributes& attributes) noexcept;
  [[nodiscard]] std::size_t weight_of_next_listed() const noexcept;
  void pop_listed(detail::PoolItem& item) noexcept;
  void take_held_up(Attributes& attributes) noexcept;
  // Returns null if the oldest task is plain, or if the queue is empty.
  [[nodiscard]] Attributes* oldest_attributed() const noexcept;

  SegmentQueue plain_;
  std::size_t listed_ = 0;
  std::size_t held_up_size_ = 0;
  std::size_t held_up_weight_ = 0;
  std::array<PriorityLevel, kLevels> levels_;
  std::array<unsigned, kLevels> passed_over_{};
  AttributesList held_up_;
  KeyTable keys_;
  std::uint64_t accepted_ = 0;  // The number of tasks with attributes accepted so far.
};

}  // namespace weft::pool

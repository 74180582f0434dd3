// Counts how many tasks may run, and how many may be accepted.
#pragma once

#include <algorithm>
#include <cstddef>
#include <weft/detail/invariant.hpp>
#include <weft/pool_options.hpp>

namespace weft::pool {

// Calculates how much of a pool's capacity is in use. A plain value, guarded by its owner's lock.
//
// A slot is the right to run one task. A task of weight w adds w to the load when it is accepted,
// and w to the used slots when it starts.
// Invariants
//   I1  load_ is the weight of all running and queued tasks. A new task may raise load_ at most to
//       bound_: the capacity plus the queue capacity, minus the reserved places. See has_room().
//   I2  used() is the weight of the running tasks. It exceeds capacity_ only while tasks that were
//       started under a larger capacity still run, or while the only running task is heavier than
//       the capacity.
//   I3  While any slot is reserved, no task starts, because a heavy task is waiting to get its
//       slots back.
class Slots {
 public:
  Slots(std::size_t capacity, std::size_t queue_capacity) noexcept
      : queue_capacity_(queue_capacity) {
    resize(capacity);
  }

  void resize(std::size_t capacity) noexcept {
    capacity_ = capacity;
    set_bound();
  }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::size_t available() const noexcept { return left_of(capacity_, load_); }
  [[nodiscard]] std::size_t running() const noexcept { return running_; }    // Tasks.
  [[nodiscard]] std::size_t released() const noexcept { return released_; }  // Tasks.
  [[nodiscard]] std::size_t load() const noexcept { return load_; }
  [[nodiscard]] std::size_t used() const noexcept { return running_ + extra_running_; }

  // Returns whether a task of that weight can be accepted. After a resize, a task may be heavier
  // than bound_. Such a task is accepted only if no task runs and all queued tasks wait for keys
  // (`held_up`). A task that holds such a key may be waiting for the heavy task, so the heavy task
  // must not wait for that task.
  [[nodiscard]] bool has_room(std::size_t weight, std::size_t held_up) const noexcept {
    return weight <= left_of(bound_, load_) || (weight > 1 && load_ == held_up);
  }
  [[nodiscard]] bool has_room() const noexcept { return load_ < bound_; }
  // Returns whether a task of that weight could be accepted if no task were queued.
  [[nodiscard]] bool has_room_beside_running(std::size_t weight) const noexcept {
    return weight <= left_of(bound_, used()) || (weight > 1 && used() == 0);
  }
  // Returns whether the queue has room for another task that must wait for its key. `held_up` is
  // the weight of all tasks that wait for keys; these tasks use room in the queue, but no slots.
  [[nodiscard]] bool has_place_behind_key(std::size_t held_up, std::size_t weight) const noexcept {
    return weight <= left_of(queue_capacity_, held_up);
  }
  // Returns whether a queued task can start alongside the running tasks.
  [[nodiscard]] bool can_start(std::size_t weight) const noexcept {
    if (reserved_ > 0) [[unlikely]]
      return false;
    if (weight == 1 && extra_running_ == 0) [[likely]]
      return true;  // While no heavy task runs, each worker has a slot.
    return running_ == 0 || weight <= left_of(capacity_, used());
  }
  // Returns whether a new plain task could start at once if a worker were available.
  [[nodiscard]] bool can_start_newcomer() const noexcept {
    return extra_running_ == 0 && reserved_ == 0;
  }

  void accept(std::size_t weight) noexcept { load_ += weight; }
  void drop(std::size_t weight) noexcept {
    WEFT_INVARIANT(load_ >= used() + weight, "Slots I1: queued tasks are in the load");
    load_ -= weight;
  }
  void drop_queued() noexcept { load_ = used(); }
  void start(std::size_t weight) noexcept {
    WEFT_INVARIANT(reserved_ == 0, "Slots I3: while anything is reserved nothing starts");
    begin(weight);
    WEFT_INVARIANT(load_ >= used(), "Slots I1: running tasks are in the load");
  }
  void end(std::size_t weight) noexcept {
    WEFT_INVARIANT(running_ > 0 && extra_running_ >= weight - 1,
                   "Slots I2: slots of running tasks are in use");
    --running_;
    extra_running_ -= weight - 1;
    load_ -= weight;
  }

  // Called when a plain task has ended and another plain task starts in its slot.
  void pass_on() noexcept { --load_; }

  // With release(), a task that waits for its own pool gives its slots back. With reacquire(), the
  // task takes the slots again.
  void release(std::size_t weight) noexcept {
    end(weight);
    ++released_;
  }
  // Returns whether a task can take its slots again after a wait. A task of weight 1 cannot take a
  // free slot that an accepted task in the queue will need (I1). While slots are reserved, no
  // queued task can start, so the task can take any free slot.
  [[nodiscard]] bool can_reacquire(std::size_t weight) const noexcept {
    if (weight > 1) return used() == 0 || weight <= left_of(capacity_, used());
    return used() < capacity_ && (reserved_ > 0 || load_ < whole_bound());
  }
  void reacquire(std::size_t weight) noexcept {
    --released_;
    begin(weight);
    load_ += weight;
  }
  // With lend(), a plain task lends its slot to a task for which it waits. With end_loan(), the
  // plain task gets the slot back when the other task ends.
  void lend() noexcept { ++released_; }
  void end_loan() noexcept { --released_; }
  // Frees all but one of the slots of a running task that has this weight.
  void shrink(std::size_t weight) noexcept {
    extra_running_ -= weight - 1;
    load_ -= weight - 1;
  }
  // Until unreserve(), no task starts, and the room for new tasks is smaller by `weight`.
  void reserve(std::size_t weight) noexcept {
    reserved_ += weight;
    set_bound();
  }
  void unreserve(std::size_t weight) noexcept {
    reserved_ -= weight;
    set_bound();
  }

 private:
  void begin(std::size_t weight) noexcept {
    ++running_;
    extra_running_ += weight - 1;
  }
  // Returns 0 if `part` is larger. Callers use differences, because sums of weights could overflow.
  [[nodiscard]] static std::size_t left_of(std::size_t whole, std::size_t part) noexcept {
    return whole - std::min(whole, part);
  }
  [[nodiscard]] std::size_t whole_bound() const noexcept {
    return queue_capacity_ > kUnlimited - capacity_ ? kUnlimited : capacity_ + queue_capacity_;
  }
  void set_bound() noexcept {
    const std::size_t whole = whole_bound();
    bound_ = whole == kUnlimited ? kUnlimited : left_of(whole, reserved_);
  }

  std::size_t load_ = 0;
  std::size_t running_ = 0;
  std::size_t extra_running_ = 0;  // Slots of running tasks, except each task's first.
  std::size_t bound_ = 0;
  std::size_t reserved_ = 0;
  std::size_t capacity_ = 0;
  std::size_t queue_capacity_;
  std::size_t released_ = 0;
};

}  // namespace weft::pool

// From fiber to fiber; mirrors scheduler/worker.cpp.
#include "bench/model/worker.hpp"

#include <utility>

namespace weft::bench::model {

Worker::Worker(World& world, unsigned index)
    : world_(world),
      index_(index),
      random_(static_cast<std::uint32_t>(world.seed * 7'919 + index)),
      looks_(world.idle.asleep.size()) {}

void Worker::live() {
  for (;;) {
    Fiber* fiber = find_work();
    if (searching_) end_search();
    run_fibers(fiber);
  }
}

void Worker::spend(Use use, Time time) {
  world_.sums.spend(use, time);
  world_.clock.wait_until(seat_, now() + time);
}

void Worker::run_fibers(Fiber* fiber) {
  for (; fiber != nullptr; fiber = take_next()) {
    bring_here(*fiber);
    world_.sums.start_delay.add(now() - fiber->ready_at);
    const Time cost = fiber->started ? world_.costs.resume : world_.costs.run_new;
    spend(Use::fibers, cost + write(counters_line_));
    ++switches_;
    ++world_.sums.runs;
    fiber->started = true;
    if (world_.load.run(*fiber, *this) == Outcome::yielded) make_ready_last(*fiber);
  }
}

// What a fiber needs is in the cache of the core that it was on.
void Worker::bring_here(Fiber& fiber) {
  const int from = std::exchange(fiber.home, static_cast<int>(index_));
  if (from < 0 || from == fiber.home) return;
  const double lines = fiber.started ? world_.costs.lines_of_parked : world_.costs.lines_of_new;
  const Time each = world_.memory.move(static_cast<unsigned>(from), index_);
  spend(Use::fibers, static_cast<Time>(lines * static_cast<double>(each)));
}

void Worker::spawn(Fiber& fiber, Time cost) {
  spend(Use::fibers, cost + read(head_line_) + write(tail_line_) + write(counters_line_));
  fiber.home = static_cast<int>(index_);
  fiber.ready_at = now();
  ++world_.sums.spawned;
  push(fiber);
  announce_work();
}

void Worker::push(Fiber& fiber) {
  if (queue_.size() == kCapacity) {
    const auto half = queue_.begin() + kCapacity / 2;
    overflow_.emplace_back(queue_.begin(), half);
    queue_.erase(queue_.begin(), half);
    head_ += kCapacity / 2;
    spend(Use::fibers, write(head_line_) + write(slot_line_));
  }
  queue_.push_back(&fiber);
}

void Worker::announce_work() {
  IdleSet& idle = world_.idle;
  const Time stalls = world_.policy.has_hint_line
                          ? read(idle.hint_line)
                          : read(idle.searching_line) + read(idle.bits_line);
  if (stalls > 0) spend(Use::fibers, stalls);
  if (world_.wants_wake()) world_.wake_one(this);
  if (queue_.size() >= world_.policy.push_ends_nap && world_.napper != nullptr) {
    world_.napper->unpark();
    spend(Use::kernel, world_.costs.wake_call);
  }
}

void Worker::make_ready(Fiber& fiber) {
  fiber.ready_at = now() + world_.costs.wake;
  spend(Use::fibers, world_.costs.wake + write(slot_line_));
  if (Fiber* displaced = std::exchange(slot_, &fiber)) {
    spend(Use::fibers, read(head_line_) + write(tail_line_));
    push(*displaced);
  }
  announce_work();
}

void Worker::make_ready_last(Fiber& fiber) {
  fiber.ready_at = now() + world_.costs.wake;
  spend(Use::fibers, world_.costs.wake + read(head_line_) + write(tail_line_));
  push(fiber);
  announce_work();
}

Fiber* Worker::take_next() {
  if (++tick_ % kFairnessPeriod == 0) {
    fair_share_due_ = true;
    return nullptr;
  }
  if (slot_ != nullptr) {
    spend(Use::fibers, write(slot_line_));
    if (Fiber* fiber = std::exchange(slot_, nullptr)) {
      if (slot_runs_++ < kSlotRunsInARow) return fiber;
      push(*fiber);
    }
  }
  slot_runs_ = 0;
  return pop();
}

Fiber* Worker::pop() {
  if (queue_.empty()) return nullptr;
  spend(Use::fibers, read(tail_line_) + write(head_line_));
  if (queue_.empty()) return nullptr;
  Fiber* fiber = queue_.front();
  queue_.pop_front();
  ++head_;
  return fiber;
}

}  // namespace weft::bench::model

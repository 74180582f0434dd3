// As a thief; mirrors scheduler/worker_search.cpp.
#include <algorithm>
#include <utility>

#include "bench/model/worker.hpp"

namespace weft::bench::model {

namespace {

constexpr Time kLookIsOld = kMillisecond;
constexpr Time kShortestNap = 50 * kMicrosecond;
constexpr std::size_t kSlotsInALine = 8;

}  // namespace

std::uint32_t Worker::below(std::uint32_t bound) {
  return static_cast<std::uint32_t>((std::uint64_t{random_()} * bound) >> 32);
}

// Each fiber's record is read for the link to the next one: a line each, one after the other.
void Worker::adopt_chain(const std::vector<Fiber*>& chain) {
  for (Fiber* fiber : chain) {
    const auto from = static_cast<unsigned>(std::max(fiber->home, 0));
    spend(Use::fibers, world_.memory.move(from, index_) + 2 * kNanosecond);
    push(*fiber);
  }
  spend(Use::fibers, write(tail_line_));
}

Fiber* Worker::steal_chain(Worker& victim) {
  spend(Use::search, write(victim.slot_line_));
  if (victim.overflow_.empty()) return nullptr;
  const std::vector<Fiber*> chain = std::move(victim.overflow_.front());
  victim.overflow_.pop_front();
  world_.sums.stolen += chain.size();
  adopt_chain(chain);
  return pop();
}

bool Worker::is_worth_it(const Look& before, const Look& look, std::size_t size) const {
  if (size == 0) return false;
  const Time elapsed = look.time - before.time;
  const auto taken = static_cast<Time>(look.head - before.head);
  return taken * world_.policy.worth_stealing <= static_cast<Time>(size) * elapsed;
}

Fiber* Worker::steal_from(Worker& victim, Look& look, Time now_at_start) {
  ++world_.sums.looks;
  spend(Use::search, world_.costs.look + read(victim.slot_line_));
  if (!victim.overflow_.empty()) {
    if (Fiber* fiber = steal_chain(victim)) return fiber;
  }
  const Time elapsed = now_at_start - look.time;
  if (elapsed < world_.policy.worth_stealing) return nullptr;
  spend(Use::search,
        read(victim.head_line_) + read(victim.counters_line_) + read(victim.tail_line_));
  const Look before =
      std::exchange(look, Look{now_at_start, victim.head_, victim.switches_, victim.slot_});
  const std::size_t size = victim.queue_.size();
  if (size >= world_.policy.surely_waiting) return steal_half(victim);
  if (elapsed > kLookIsOld) return nullptr;
  if (is_worth_it(before, look, size)) {
    if (Fiber* fiber = steal_half(victim)) return fiber;
  }
  if (look.slot == nullptr || look.slot != before.slot || look.switches != before.switches) {
    return nullptr;
  }
  spend(Use::search, write(victim.slot_line_));
  return std::exchange(victim.slot_, nullptr);
}

Fiber* Worker::steal_half(Worker& victim) {
  for (;;) {
    const std::uint64_t head = victim.head_;
    const std::size_t size = victim.queue_.size();
    if (size == 0) return nullptr;
    const std::size_t count = world_.policy.steals_half ? size - size / 2 : 1;
    const auto slot_lines = static_cast<Time>((count + kSlotsInALine - 1) / kSlotsInALine);
    spend(Use::search, world_.costs.steal + read(victim.tail_line_) +
                           slot_lines * world_.memory.move(victim.index_, index_));
    spend(Use::search, write(victim.head_line_));
    if (victim.head_ != head || victim.queue_.size() < count) {
      if (world_.policy.retries) continue;
      return nullptr;
    }
    for (std::size_t i = 0; i < count; ++i) {
      queue_.push_back(victim.queue_.front());
      victim.queue_.pop_front();
    }
    victim.head_ += count;
    world_.sums.stolen += count;
    Fiber* to_run = queue_.back();
    queue_.pop_back();
    spend(Use::search, write(tail_line_));
    return to_run;
  }
}

Worker& Worker::victim_number(std::uint32_t number, std::uint32_t start) {
  const auto count = static_cast<std::uint32_t>(world_.workers.size());
  switch (world_.policy.order) {
    case VictimOrder::random:
      return *world_.workers[below(count)];
    case VictimOrder::ring:
      return *world_.workers[(index_ + 1 + number) % count];
    case VictimOrder::last_first:
      if (number == 0) return *world_.workers[last_victim_];
      return *world_.workers[(start + number) % count];
    case VictimOrder::random_start:
      break;
  }
  return *world_.workers[(start + number) % count];
}

Fiber* Worker::look_everywhere(Time now_at_start) {
  if (Fiber* fiber = pop_injected()) return fiber;
  const auto count = static_cast<std::uint32_t>(world_.workers.size());
  const std::uint32_t start = below(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    Worker& victim = victim_number(i, start);
    if (&victim == this) continue;
    if (Fiber* fiber = steal_from(victim, looks_[victim.index_], now_at_start)) {
      last_victim_ = victim.index_;
      ++world_.sums.steals;
      return fiber;
    }
  }
  spend(Use::search, world_.costs.clock + look_at_all_timers());
  return nullptr;
}

Fiber* Worker::search_for_a_while() {
  for (const Time start = now(); now() - start < world_.policy.search_time;) {
    if (Fiber* fiber = look_everywhere(now())) return fiber;
    spend(Use::search, world_.costs.pause + world_.costs.clock);
  }
  return nullptr;
}

bool Worker::others_make_progress() const {
  return std::ranges::any_of(world_.workers, [this](const auto& other) {
    return other.get() != this && other->switches_ != looks_[other->index_].switches;
  });
}

bool Worker::try_begin_search() {
  IdleSet& idle = world_.idle;
  spend(Use::search, read(idle.searching_line));
  if (idle.searching >= world_.most_searching()) return false;
  spend(Use::search, write(idle.searching_line));
  if (idle.searching >= world_.most_searching()) return false;
  ++idle.searching;
  world_.update_hint(*this);
  return true;
}

Fiber* Worker::search() {
  if (world_.workers.size() == 1) return nullptr;
  if (!searching_) searching_ = try_begin_search();
  if (!searching_) return nullptr;
  for (Time nap = kShortestNap;; nap = std::min(nap * 2, world_.policy.longest_nap)) {
    if (Fiber* fiber = search_for_a_while()) return fiber;
    if (!others_make_progress()) return nullptr;
    spend(Use::search, write(world_.napper_line));
    if (world_.napper != nullptr) return nullptr;
    world_.napper = this;
    if (world_.injected.empty()) (void)block_until(now() + nap);
    world_.napper = nullptr;
    if (Fiber* fiber = pop()) return fiber;
  }
}

void Worker::end_search() {
  searching_ = false;
  spend(Use::search, write(world_.idle.searching_line));
  const bool was_last = --world_.idle.searching == 0;
  world_.update_hint(*this);
  if (queue_.size() > 1) {
    for (unsigned i = 0; i < world_.policy.wakes_of_a_thief; ++i) {
      if (world_.idle.sleeping > 0) world_.wake_one(this);
    }
  }
  if (was_last && world_.idle.sleeping > 0 && world_.has_work()) {
    spend(Use::search, look_at_all_timers());
    if (world_.wants_wake()) world_.wake_one(this);
  }
}

}  // namespace weft::bench::model

// On the idle stack; mirrors scheduler/worker_idle.cpp.
#include <algorithm>
#include <utility>

#include "bench/model/worker.hpp"

namespace weft::bench::model {

namespace {

constexpr Time kFirstSleep = kMillisecond;
constexpr Time kPollInterval = 20 * kMicrosecond;
constexpr std::size_t kRefillBelow = 64;
constexpr std::size_t kEvents = 128;  // That one poll fetches.

}  // namespace

Fiber* Worker::find_work() {
  for (;;) {
    spend(Use::fibers, world_.costs.idle_round);
    if (fair_share_due_) take_fair_share();
    run_events();
    refill();
    if (Fiber* fiber = take_next()) return fiber;
    if (fair_share_due_) continue;
    if (Fiber* fiber = pop_injected()) return fiber;
    last_poll_ = -kMillisecond;
    run_events();
    if (has_work()) continue;
    if (Fiber* fiber = search()) return fiber;
    sleep();
  }
}

Fiber* Worker::pop_injected() {
  if (const Time stall = read(world_.inject_line)) spend(Use::search, stall);
  if (world_.injected.empty()) return nullptr;
  spend(Use::search, write(world_.inject_line));
  if (world_.injected.empty()) return nullptr;
  Fiber* fiber = world_.injected.front();
  world_.injected.pop_front();
  return fiber;
}

void Worker::take_fair_share() {
  fair_share_due_ = false;
  if (Fiber* fiber = pop_injected()) push(*fiber);
  if (overflow_.empty()) return;
  spend(Use::fibers, write(slot_line_));
  if (overflow_.empty()) return;
  std::vector<Fiber*>& oldest = overflow_.front();
  Fiber* fiber = oldest.front();
  oldest.erase(oldest.begin());
  if (oldest.empty()) overflow_.pop_front();
  push(*fiber);
}

void Worker::refill() {
  if (overflow_.empty() || queue_.size() >= kRefillBelow) return;
  spend(Use::fibers, write(slot_line_));
  if (overflow_.empty()) return;
  const std::vector<Fiber*> chain = std::move(overflow_.back());
  overflow_.pop_back();
  adopt_chain(chain);
}

void Worker::run_events() {
  spend(Use::fibers, world_.costs.clock);
  if (world_.watches_anything && now() - last_poll_ > kPollInterval) {
    last_poll_ = now();
    poll();
  }
}

void Worker::poll() {
  ++world_.sums.polls;
  spend(Use::kernel, world_.costs.poll);
  std::vector<Fiber*> found;
  while (!world_.events.empty() && found.size() < kEvents) {
    found.push_back(world_.events.front());
    world_.events.pop_front();
  }
  if (!found.empty()) {
    spend(Use::kernel, static_cast<Time>(found.size()) * world_.costs.poll_event);
  }
  for (Fiber* fiber : found) {
    const Time arrived = fiber->ready_at;
    make_ready_last(*fiber);
    fiber->ready_at = arrived;  // It waits from its event on.
  }
}

// Sleep_limit and run_overdue_timers look at every worker's next timer, which shares its line with
// the slot.
Time Worker::look_at_all_timers() {
  Time takes = 0;
  for (auto& other : world_.workers) takes += read(other->slot_line_) + kNanosecond;
  return takes;
}

void Worker::sleep() {
  IdleSet& idle = world_.idle;
  for (bool napped = false;; napped = true) {
    spend(Use::search, write(idle.bits_line));
    idle.asleep[index_] = true;
    ++idle.sleeping;
    if (std::exchange(searching_, false)) {
      spend(Use::search, write(idle.searching_line));
      --idle.searching;
    }
    world_.update_hint(*this);
    bool work = !world_.injected.empty();
    if (!work && idle.searching == 0) {
      spend(Use::search, look_at_all_timers());
      work = world_.has_work();
    }
    if (!work) spend(Use::search, look_at_all_timers());
    const Time limit = napped ? kNever : now() + kFirstSleep;
    const bool awake = work || block_until(limit);
    if (!idle.asleep[index_]) {
      // Chosen by a waker, which counts this worker as searching.
      if (!awake) (void)block_until(kNever);
      searching_ = true;
      return;
    }
    spend(Use::search, write(idle.bits_line));
    if (!idle.asleep[index_]) {
      (void)block_until(kNever);
      searching_ = true;
      return;
    }
    idle.asleep[index_] = false;
    --idle.sleeping;
    world_.update_hint(*this);
    if (work) searching_ = try_begin_search();
    if (awake) return;
    ++world_.sums.sleeps;
  }
}

bool Worker::block_until(Time limit) {
  if (std::exchange(token_, false)) return true;
  const bool polls = world_.watches_anything && world_.in_poller == nullptr;
  if (polls) {
    world_.in_poller = this;
    poll();
    if (has_work()) {
      world_.in_poller = nullptr;
      token_ = false;
      return true;
    }
  }
  spend(Use::kernel, world_.costs.sleep);
  if (!token_ && !(polls && !world_.events.empty())) {
    is_blocked_ = true;
    (void)world_.clock.wait_for_call(seat_, limit);
    is_blocked_ = false;
  }
  if (polls) {
    world_.in_poller = nullptr;
    poll();
  }
  return std::exchange(token_, false) || has_work();
}

void Worker::unpark() {
  token_ = true;
  if (is_blocked_) world_.clock.call_at(seat_, now() + world_.costs.wake_latency);
}

void Worker::call_from_poller() {
  if (is_blocked_) world_.clock.call_at(seat_, now() + world_.costs.wake_latency);
}

}  // namespace weft::bench::model

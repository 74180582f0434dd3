// What a worker does with timers: its own, and other workers'.
#include <algorithm>
#include <utility>

#include "scheduler/machine_clock.hpp"
#include "scheduler/shared.hpp"
#include "scheduler/sleep/sleep_protocol.hpp"
#include "scheduler/tuning.hpp"
#include "scheduler/worker/worker.hpp"

namespace weft::scheduler {

using detail::relaxed;
using fibers::Fiber;

// This worker sees to it at its next look, or before it sleeps; where runs are long, a sleeper
// does.
void Worker::announce_event() noexcept {
  if (current_fiber() != nullptr && expects_long_runs()) mind_watch_while_awake();
}

// Not inlined into what begins a sleep: see Timers::try_follow().
void Worker::lead_sleep(Timer& timer, Deadline deadline) noexcept {
  if (desk_.timers.add_sleep(timer, deadline)) announce_event();
}

// A sleeper is to see to the timers here if this worker does not get to them in time.
void Worker::mind_watch_while_awake() noexcept {
  if (!shared_.idle().anyone_asleep()) return;
  const Deadline next = desk_.next_timer_hint();
  mind_watch(shared_, next.is_never() ? next.nanoseconds() : next.nanoseconds() + tuning::kOverdue);
}

// Wakes as many fibers of a chain whose sleep is over as a ring holds, so that others need not wait
// for all; `first` is then the next one. One hold of a lock queues them, without a look at their
// stacks, which are on their way into the cache.
std::size_t Worker::wake_sleepers(Fiber*& first) noexcept {
  Chain due;
  std::size_t woken = 0;
  for (; first != nullptr && woken < RunQueue::kCapacity; ++woken) {
    Fiber& fiber = *std::exchange(first, first->next);
    if (first != nullptr) fibers::prefetch(first->stack.load(relaxed));
    desk_.recorder.ready(fiber);
    if (fiber.is_pinned()) [[unlikely]] {
      send_home(fiber);
    } else {
      due.append(fiber);
    }
  }
  desk_.recorder.counters().timers.add(woken);
  desk_.queue.push_due(due);
  // Other fibers need not wait for all of a million.
  if (first != nullptr && pace_.may_call() && shared_.idle().wants_wake_hint()) call_for_help();
  return woken;
}

std::size_t Worker::run_timers(Timers& timers, std::int64_t now) noexcept {
  std::size_t woken = 0;
  for (Timer* timer = timers.expire(now); timer != nullptr;) {
    // Read before the wake: the timer lies on the stack of the fiber that goes on then.
    Timer* next = timer->next;
    Fiber* fiber = timer->waker.fiber();
    if (timer->leads) {
      while (fiber != nullptr) woken += wake_sleepers(fiber);
    } else {
      desk_.recorder.counters().timers.add_one();
      make_ready_last(*fiber);
      ++woken;
    }
    timer = next;
  }
  return woken;
}

// By how much timers of that worker have to be overdue before this one sees to them: one that is
// awake sees to its own, unless it computes for long.
std::int64_t Worker::grace_of(const Desk& other) const noexcept {
  return &other != &desk_ && !shared_.idle().is_asleep(other.index) ? tuning::kOverdue : 0;
}

bool Worker::has_due_timers(const Desk& other, std::int64_t now) const noexcept {
  return other.timers.due_hint(now - grace_of(other));
}

// Runs timers of all workers: a sleeping worker relies on the holder of the watch, and one that
// computes does not get to its own. True when anything has become runnable.
bool Worker::run_events_of_all() noexcept {
  const std::int64_t now = machine_now();
  std::size_t woken = 0;
  for (Desk* other : shared_.desks()) {
    if (has_due_timers(*other, now)) {
      woken += run_timers(other->timers, now);
    }
  }
  return woken > 0;
}

bool Worker::has_due_events() const noexcept {
  const std::int64_t now = machine_now();
  for (Desk* other : shared_.desks()) {
    if (has_due_timers(*other, now)) return true;
  }
  return false;
}

// When the holder of the watch must look again: at the latest at `limit`, and when the earliest
// timer of any worker is due. Awake workers' timers count too, in case these compute for long.
Deadline Worker::earliest_event(Deadline limit) noexcept {
  std::int64_t earliest = limit.nanoseconds();
  for (Desk* other : shared_.desks()) {
    const Deadline next = other->timers.next_hint();
    if (next.is_never()) continue;
    earliest = std::min(earliest, next.nanoseconds() + grace_of(*other));
  }
  return Deadline::at_nanoseconds(earliest);
}

}  // namespace weft::scheduler

#include "scheduler/worker/clockwork.hpp"

#include <algorithm>
#include <utility>

#include "scheduler/machine_clock.hpp"
#include "scheduler/shared.hpp"
#include "scheduler/tuning.hpp"

namespace weft::scheduler {

using detail::relaxed;
using fibers::Fiber;

// Wakes the first fibers of a chain of due sleepers, and sets `first` to the next fiber of the
// chain. Wakes at most as many fibers as a ring can hold, so that other workers can help before the
// whole chain is woken. The function queues the woken fibers together, so that it takes a lock only
// once. It prefetches their stacks but does not read them, because a read would wait for memory.
std::size_t Clockwork::wake_sleepers(Fiber*& first) noexcept {
  Chain due;
  std::size_t woken = 0;
  for (; first != nullptr && woken < RunQueue::kCapacity; ++woken) {
    Fiber& fiber = *std::exchange(first, first->next);
    if (first != nullptr) fibers::prefetch(first->stack.load(relaxed));
    worker_.desk().recorder.ready(fiber);
    if (fiber.is_pinned()) [[unlikely]] {
      shared_.desks().send_home(fiber, worker_.desk());
    } else {
      due.append(fiber);
    }
  }
  worker_.desk().recorder.counters().timers.add(woken);
  worker_.desk().queue.push_due(due);
  // Wakes another worker to help, because the rest of the chain may contain a million fibers.
  if (first != nullptr && worker_.announcer().pace().may_call() && shared_.idle().wants_wake_hint())
    worker_.announcer().call_for_help();
  return woken;
}

std::size_t Clockwork::run(Timers& timers, std::int64_t now) noexcept {
  std::size_t woken = 0;
  for (Timer* timer = timers.expire(now); timer != nullptr;) {
    // Must be read before the wake, because the timer is on the stack of the woken fiber.
    Timer* next = timer->next;
    Fiber* fiber = timer->waker.fiber();
    if (timer->leads) {
      while (fiber != nullptr) woken += wake_sleepers(fiber);
    } else {
      worker_.desk().recorder.counters().timers.add_one();
      worker_.make_ready_last(*fiber);
      ++woken;
    }
    timer = next;
  }
  return woken;
}

// Returns how long the timers of the worker `other` must be overdue before this worker runs them.
// An awake worker runs its own timers, unless it runs a fiber for a long time.
std::int64_t Clockwork::grace_of(const Desk& other) const noexcept {
  return &other != &worker_.desk() && !shared_.is_asleep(other) ? tuning::kOverdue : 0;
}

bool Clockwork::has_due(const Desk& other, std::int64_t now) const noexcept {
  return other.timers.due_hint(now - grace_of(other));
}

bool Clockwork::run_all() noexcept {
  const std::int64_t now = machine_now();
  std::size_t woken = 0;
  for (Desk* other : shared_.desks()) {
    if (has_due(*other, now)) {
      woken += run(other->timers, now);
    }
  }
  return woken > 0;
}

bool Clockwork::has_due() const noexcept {
  const std::int64_t now = machine_now();
  for (Desk* other : shared_.desks()) {
    if (has_due(*other, now)) return true;
  }
  return false;
}

Deadline Clockwork::earliest(Deadline limit) const noexcept {
  std::int64_t earliest = limit.nanoseconds();
  for (Desk* other : shared_.desks()) {
    const Deadline next = other->timers.next_hint();
    if (next.is_never()) continue;
    earliest = std::min(earliest, next.nanoseconds() + grace_of(*other));
  }
  return Deadline::at_nanoseconds(earliest);
}

}  // namespace weft::scheduler

#include "scheduler/upkeep/stack_shortage.hpp"

#include <algorithm>
#include <cstdio>
#include <weft/deadline.hpp>

#include "base/memory_limits.hpp"
#include "scheduler/shared.hpp"
#include "scheduler/tuning.hpp"
#include "scheduler/upkeep/exit_watch.hpp"

namespace weft::scheduler {

using detail::relaxed;
using fibers::Fiber;
using fibers::FiberState;

void StackShortage::put_aside(Fiber& fiber, std::int64_t now) noexcept {
  become_parked(fiber, detail::WaitReason::stack);
  const unsigned size_class = fiber.stack_class();
  const bool is_first = waiting_.fetch_add(1, relaxed) == 0;
  if (is_first) next_request_.store(now + tuning::kStackRequestPause, relaxed);
  if (fiber.is_pinned()) {
    pinned_[size_class].fetch_add(1, relaxed);
  } else {
    lists_[size_class].push_last(fiber);
  }
  raise_alarm(now);
}

Fiber* StackShortage::take(unsigned size_class) noexcept {
  Fiber* fiber = lists_[size_class].take(1).first;
  if (fiber != nullptr) waiting_.fetch_sub(1, relaxed);
  return fiber;
}

void StackShortage::note_pinned_served(unsigned size_class) noexcept {
  pinned_[size_class].fetch_sub(1, relaxed);
  waiting_.fetch_sub(1, relaxed);
}

// Wakes each sleeping worker, so that the worker returns its free stacks to the scheduler before it
// falls asleep again.
void StackShortage::raise_alarm(std::int64_t now) noexcept {
  std::int64_t last = alarm_.load(relaxed);
  if (now - last < tuning::kStackAlarmPeriod ||
      !alarm_.compare_exchange_strong(last, now, relaxed, relaxed)) {
    return;
  }
  for (Desk* desk : shared_.desks()) desk->unpark();
}

bool StackShortage::begin_request(std::int64_t now) noexcept {
  std::int64_t due = next_request_.load(relaxed);
  return now >= due && next_request_.compare_exchange_strong(due, now + tuning::kStackRequestPause,
                                                             relaxed, relaxed);
}

void StackShortage::report(std::int64_t now) noexcept {
  if (!mutex_.try_lock()) return;
  look(now);
  mutex_.unlock();
}

void StackShortage::look(std::int64_t now) noexcept {
  std::uint64_t switches = 0;
  for (const Desk* desk : shared_.desks()) switches += desk->recorder.counters().switches.get();
  // If there has been no shortage for a second, this shortage counts as new.
  if (switches != switches_ || now - last_report_ > tuning::kShortageEnds) {
    switches_ = switches;
    still_since_ = now;
  }
  last_report_ = now;
  if (now >= next_line_) write_line(now);
  if (now - still_since_ < tuning::kShortagePatience || others_may_end()) return;
  still_since_ = now;
  const auto& handler = shared_.options().on_deadlock;
  if (!handler) return;
  const ExitWatch::Pause pause;
  handler(shared_.scheduler());
}

void StackShortage::write_line(std::int64_t now) noexcept {
  next_line_ = now + tuning::kShortageLinePeriod;
  unsigned size_class = 0;
  while (size_class + 1 < fibers::kStackSizes && !anyone_waits_for(size_class)) ++size_class;
  fibers::StackSpace& space = shared_.stacks().space();
  char limit[128];
  // If no limit is configured, the line names what is used up: the address range for stacks of this
  // size, or the memory.
  if (!base::name_memory_limit(limit, sizeof limit)) {
    (void)std::snprintf(limit, sizeof limit, "%s",
                        space.is_used_up(size_class) ? "the address range of this size" : "memory");
  }
  (void)std::fprintf(
      stderr,
      "weft: no stack of %zu KiB is available: %llu are set up, and the system refuses "
      "more (%s); %zu fibers wait until others end. Raise that limit, or bound the "
      "fibers by a FiberPool or RuntimeOptions::max_fibers\n",
      fibers::stack_bytes(size_class) >> 10, static_cast<unsigned long long>(space.counts().carved),
      limit, waiting());
}

// Returns whether any fiber with a stack is ready or running, or will be woken by the clock, the
// kernel or a helper thread. Also returns true if another thread has locked the records, so that
// they cannot be read.
bool StackShortage::others_may_end() noexcept {
  for (const Desk* desk : shared_.desks()) {
    if (!desk->next_timer_hint().is_never()) return true;
  }
  bool may = false;
  const bool listed = shared_.fibers().for_each_until(Deadline::past(), [&](const Fiber& fiber) {
    // Relaxed: no fiber has run for a while, so no thread is writing these values.
    const auto reason = static_cast<detail::WaitReason>(fiber.reason());
    switch (fiber.state.load(relaxed)) {
      case FiberState::free:
        break;
      case FiberState::running:
        may = true;
        break;
      case FiberState::ready:
        may = fiber.stack.load(relaxed) != nullptr;
        break;
      case FiberState::parked:
      case FiberState::inlining:
        may = reason != detail::WaitReason::stack && !ends_from_inside(reason);
        break;
    }
    return !may;
  });
  return may || !listed;
}

}  // namespace weft::scheduler

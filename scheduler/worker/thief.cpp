#include "scheduler/worker/thief.hpp"

#include <algorithm>
#include <utility>

#include "scheduler/tuning.hpp"

namespace weft::scheduler {

namespace {

constexpr std::int64_t kLongestElapsed = 1'000'000'000;  // Nanoseconds.

}  // namespace

Thief::Look Thief::remember(const Sight& sight, std::int64_t now) noexcept {
  return {
      .time = now, .ring_head = sight.ring_head, .switches = sight.switches, .next = sight.next};
}

bool Thief::may_look(unsigned victim, std::int64_t now) const noexcept {
  return now - looks_[victim].time >= tuning::kBetweenLooks;
}

Thief::Loot Thief::look(unsigned victim, const Sight& sight, std::int64_t now) noexcept {
  const Look before = std::exchange(looks_[victim], remember(sight, now));
  const std::int64_t elapsed = now - before.time;
  if (elapsed > tuning::kLookIsOld) return {};
  const std::uint32_t run = sight.ring_head - before.ring_head;
  // At its recent pace, the victim needs size * elapsed / run nanoseconds to run the ring's fibers.
  const bool ring_waits =
      sight.ring_size > 0 && static_cast<std::int64_t>(run) * tuning::kWorthStealing <=
                                 static_cast<std::int64_t>(sight.ring_size) * elapsed;
  const bool next_waits =
      sight.next != nullptr && sight.next == before.next && sight.switches == before.switches;
  return {.has_ring = ring_waits, .has_next = next_waits};
}

bool Thief::begin_visits(std::int64_t now) noexcept {
  if (now - last_visit_ < tuning::kVisitPeriod) return false;
  last_visit_ = now;
  return true;
}

// Must be called only if the other worker has run the same fiber since `look`. If this worker will
// soon run out of work (`is_done_soon`), the other worker counts as stuck, because this worker can
// then run the other worker's fibers sooner. Otherwise, the other worker counts as stuck only if
// the fiber that it runs is computing or blocked. A thread that only waits for a processor does not
// count as stuck, because the kernel will run it soon.
bool Thief::is_stuck(Look& look, const ThreadFacts& thread, bool is_done_soon,
                     std::int64_t now) noexcept {
  if (now - look.time < tuning::kVisitPeriod) return false;
  if (is_done_soon) return true;
  const std::int64_t used = thread.processor_time();
  if (look.processor_time == 0) look.processor_time = used;
  if (used - look.processor_time >= tuning::kComputes) return true;
  if (now - std::max(look.time, look.asked) < tuning::kAskPeriod) return false;
  look.asked = now;
  return !thread.is_runnable();
}

Thief::Visit Thief::visit(unsigned other, const Sight& sight, const ThreadFacts& thread,
                          bool is_done_soon, std::int64_t now) noexcept {
  Look& look = looks_[other];
  // Without this bound, the product below could overflow at the first visit, when look.time is
  // still 0.
  const std::int64_t elapsed = std::min(now - look.time, kLongestElapsed);
  const auto run = static_cast<std::int64_t>(sight.switches - look.switches);
  if (run != 0) look = remember(sight, now);
  const bool has_fibers = sight.is_open && (sight.queued != 0 || sight.next != nullptr);
  if (!has_fibers && sight.next_timer > now - tuning::kOverdue) return {};
  Visit found;
  found.is_stuck = run == 0 && is_stuck(look, thread, is_done_soon, now);
  const std::int64_t overdue = found.is_stuck ? tuning::kOverdue : tuning::kLongOverdue;
  found.runs_timers = sight.next_timer <= now - overdue;
  if (!has_fibers) return {.runs_timers = found.runs_timers};
  found.is_slow = sight.queued * elapsed >= run * tuning::kWorthVisiting;
  found.queued = sight.queued;
  return found;
}

Thief::Relief Thief::Visit::relief(std::int64_t mine) const noexcept {
  if (is_stuck) {
    return {.fibers = std::min((queued + 1) / 2, tuning::kMostRelieved), .has_next = true};
  }
  if (!is_slow) return {};
  return {.fibers = std::min((queued - mine) / 2, tuning::kMostRelieved), .must_be_older = true};
}

}  // namespace weft::scheduler

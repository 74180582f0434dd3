#include "scheduler/shared.hpp"

#include <algorithm>

#include "base/probes.hpp"
#include "scheduler/record/fiber_states.hpp"
#include "scheduler/record/trace_book.hpp"
#include "scheduler/sleep/sleep_protocol.hpp"
#include "scheduler/tuning.hpp"

namespace weft::scheduler {

using detail::full_fence;
using detail::relaxed;
using detail::seq_cst;
using fibers::Fiber;

bool Shared::all_are_asleep() const noexcept {
  return std::ranges::all_of(desks_, [this](const Desk* desk) { return is_asleep(*desk); });
}

void Shared::stop() noexcept {
  stopping_.store(true, seq_cst);  // [idle]
  full_fence();                    // [idle]
  for (Desk* desk : desks_) desk->unpark();
}

bool Shared::has_work_hint() const noexcept {
  return has_outside_work_hint() ||
         std::ranges::any_of(desks_, [](const Desk* desk) { return desk->has_work_hint(); });
}

bool Shared::has_events_to_watch() const noexcept {
  return watches_events() || std::ranges::any_of(desks_, [](const Desk* desk) {
           return !desk->next_timer_hint().is_never();
         });
}

Deadline Shared::earliest_timer_of_awake() const noexcept {
  std::int64_t earliest = Deadline::never().nanoseconds();
  for (const Desk* desk : desks_) {
    const Deadline next = desk->next_timer_hint();
    if (next.is_never() || is_asleep(*desk)) continue;
    earliest = std::min(earliest, next.nanoseconds() + tuning::kOverdue);
  }
  return Deadline::at_nanoseconds(earliest);
}

void Shared::make_ready_from_outside(Fiber& fiber) noexcept {
  const Visitors::Visit visit(visitors_);
  become_ready(fiber);
  WEFT_PROBE(wake, &fiber, -1);
  if (detail::is_tracing()) [[unlikely]]
    trace_fiber_from_outside(detail::TraceKind::ready, fiber);
  if (fiber.is_pinned()) [[unlikely]]
    return desks_.home_of(fiber).send_pinned(fiber);
  if (options_.simulation != nullptr && !detail::is_simulated()) [[unlikely]]
    options_.simulation->woken_from_outside(fiber);
  inject_queue_.push(fiber);
  announce_from_outside(*this);
}

// Sums the counts of finished fibers first, and then the counts of spawned fibers. All counts only
// grow, so equal sums prove that no fiber was alive at some moment between the two summations.
std::uint64_t Shared::live() const noexcept {
  std::uint64_t finished = 0;
  for (const Desk* desk : desks_) finished += desk->recorder.counters().finished.get();
  return spawned() - finished;
}

std::uint64_t Shared::spawned() const noexcept {
  std::uint64_t sum = visitors_.spawned();
  for (const Desk* desk : desks_) sum += desk->recorder.counters().spawned.get();
  return sum;
}

}  // namespace weft::scheduler

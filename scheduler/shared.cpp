#include "scheduler/shared.hpp"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>
#include <weft/error.hpp>

#include "base/membarrier.hpp"
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

namespace {

unsigned take_number() noexcept {
  static detail::Atomic<unsigned> next{0};
  return next.fetch_add(1, relaxed);  // Relaxed: only distinctness matters.
}

// Without a monitor no worker may be called up, or held back because the processors are crowded.
ActiveWorkers::Setting active_setting(const SchedulerOptions& options) {
  if (!options.monitor.enabled) return {options.workers, 0, options.workers + 1};
  return {options.workers, options.processors.most_workers,
          std::max(options.processors.count(), 1U)};
}

}  // namespace

// The queue of an only worker is closed to thieves, which makes it faster, provided it can later be
// opened for spares. The spares' queues are open.
Shared::Shared(Scheduler& scheduler, SchedulerOptions options, fibers::StackMain stack_main,
               EventSource& events)
    : scheduler_(scheduler),
      options_(std::move(options)),
      active_(active_setting(options_)),
      desks_(most_workers(), options_.workers,
             {.has_open_queue =
                  options_.workers > 1 || (options_.monitor.enabled && !base::prepare_barriers()),
              .scheduler = take_number(),
              .simulation = options_.simulation}),
      stores_(
          stack_main, this, options_.max_fibers,
          {options_.monitor.enabled ? options_.memory_goal : 0, options_.refuses_at_memory_goal}),
      events_(events),
      idle_(options_.workers, most_workers()) {
  if (options_.refuses_without_stacks) fibers().refuse_while_any(stack_shortage_.count());
}

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

void Shared::throw_too_many_fibers() {
  if (const std::size_t waiting = stack_shortage_.waiting();
      waiting != 0 && options_.refuses_without_stacks) {
    throw std::system_error(make_error_code(Errc::too_many_fibers),
                            "weft: RuntimeOptions::refuse_without_stacks: " +
                                std::to_string(waiting) + " fibers wait for a stack");
  }
  if (const MemoryGoal& goal = stores_.goal(); goal.is_refusing()) {
    // The monitor must check whether the process uses less memory, even if no worker wakes up.
    full_fence();  // [goal]
    monitor_rest_.end();
    throw std::system_error(make_error_code(Errc::too_many_fibers),
                            "weft: RuntimeOptions::memory_goal = " + std::to_string(goal.bytes()) +
                                " bytes, which the process uses");
  }
  throw std::system_error(
      make_error_code(Errc::too_many_fibers),
      "weft: RuntimeOptions::max_fibers = " + std::to_string(options_.max_fibers));
}

// Finished fibers are summed before spawned ones: both only grow, so when the sums are equal,
// there was a moment in between at which nothing was alive.
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

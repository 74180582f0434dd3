#include "runtime/stats.hpp"

#include "scheduler/helpers.hpp"

namespace weft::runtime {

// Counts of ends are read before counts of beginnings, so the former never exceed the latter.
RuntimeStats stats_of(scheduler::Scheduler& scheduler) noexcept {
  RuntimeStats stats;
  scheduler::Shared& shared = scheduler.shared();
  stats.workers = shared.active().usual();
  stats.active_workers = shared.active().at_work();
  for (const scheduler::Desk* desk : shared.desks()) {
    const scheduler::WorkerCounters& counters = desk->recorder.counters();
    stats.finished += counters.finished.get();
    stats.switches += counters.switches.get();
    stats.steals += counters.steals.get();
    stats.worker_sleeps += counters.sleeps.get();
    stats.worker_wakeups += desk->wakeups();
  }
  stats.stalls_blocked = scheduler.monitor().blocked_stalls();
  stats.stalls_busy = scheduler.monitor().busy_stalls();
  stats.spare_workers = shared.active().surplus();
  stats.spawned = shared.spawned();
  stats.live = stats.spawned - stats.finished;
  const auto stacks = shared.stacks().space().counts();
  stats.stacks_carved = stacks.carved;
  stats.stacks_resident = stacks.carved - stacks.cold;
  stats.record_bytes = shared.fibers().bytes();
  if (auto* const helpers = shared.options().helpers) {  // A simulation has none.
    stats.blocking_threads = helpers->size_hint();
  }
  stats.memory_goal = shared.stores().goal().bytes();
  stats.memory_goals_reached = shared.stores().goal().times();
  stats.without_stack = shared.stack_shortage().waiting();
  return stats;
}

}  // namespace weft::runtime

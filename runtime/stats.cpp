#include "runtime/stats.hpp"

namespace weft::runtime {

// The ends are read before the beginnings: so no more has ended than has begun.
RuntimeStats stats_of(scheduler::Scheduler& scheduler) noexcept {
  RuntimeStats stats;
  stats.workers = scheduler.options().workers;
  for (const auto& worker : scheduler.workers()) {
    const scheduler::WorkerCounters& counters = worker->recorder().counters();
    stats.finished += counters.finished.get();
    stats.switches += counters.switches.get();
    stats.steals += counters.steals.get();
    stats.worker_sleeps += counters.sleeps.get();
    stats.worker_wakeups += worker->wakeups();
  }
  stats.stalls_blocked = scheduler.monitor().blocked_stalls();
  stats.stalls_busy = scheduler.monitor().busy_stalls();
  stats.spare_workers = scheduler.spares_at_work();
  stats.spawned = scheduler.spawned();
  stats.live = stats.spawned - stats.finished;
  const auto stacks = scheduler.stacks().space().counts();
  stats.stacks_carved = stacks.carved;
  stats.stacks_resident = stacks.carved - stacks.cold;
  stats.record_bytes = scheduler.fibers().bytes();
  stats.blocking_threads = scheduler.blocking().size_hint();
  stats.without_stack = scheduler.stack_shortage().waiting();
  return stats;
}

}  // namespace weft::runtime

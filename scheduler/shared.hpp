// The state that the workers of one scheduler share.
#pragma once

#include <cstdint>
#include <weft/deadline.hpp>
#include <weft/detail/atomic.hpp>

#include "base/cache_line.hpp"
#include "scheduler/desks.hpp"
#include "scheduler/event_source.hpp"
#include "scheduler/options.hpp"
#include "scheduler/queues/inject_queue.hpp"
#include "scheduler/simulation.hpp"
#include "scheduler/sleep/idle_set.hpp"
#include "scheduler/sleep/quiescence.hpp"
#include "scheduler/sleep/watch.hpp"
#include "scheduler/upkeep/active_workers.hpp"
#include "scheduler/upkeep/deadlock.hpp"
#include "scheduler/upkeep/monitor_rest.hpp"
#include "scheduler/upkeep/stack_shortage.hpp"
#include "scheduler/upkeep/stores.hpp"
#include "scheduler/visitors.hpp"

namespace weft::scheduler {

// Contains the desks of the workers, the inject queue, the free stacks and records, and the sets of
// workers that are asleep, searching and on watch. The class starts no thread and cannot access a
// Worker; the monitor, DeadlockWatch and StackShortage access only desks.
class Shared {
 public:
  Shared(Scheduler& scheduler, SchedulerOptions options, fibers::StackMain stack_main,
         EventSource& events);
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  // Returns the scheduler, for the layers above the workers. A worker uses it only as the argument
  // of the on_deadlock handler.
  [[nodiscard]] Scheduler& scheduler() const noexcept { return scheduler_; }
  [[nodiscard]] const SchedulerOptions& options() const noexcept { return options_; }
  // The sequence number of this scheduler in the process, which starts at 0.
  [[nodiscard]] unsigned number() const noexcept { return desks_.scheduler(); }
  // Returns the time of the clock that the scheduler's fibers use.
  [[nodiscard]] std::int64_t now() const noexcept {
    return options_.simulation != nullptr ? options_.simulation->now()
                                          : Deadline::now_nanoseconds();
  }

  // --- Workers ---

  [[nodiscard]] Desks& desks() noexcept { return desks_; }
  [[nodiscard]] const Desks& desks() const noexcept { return desks_; }
  [[nodiscard]] Desk& desk(unsigned index) noexcept { return desks_[index]; }
  [[nodiscard]] unsigned most_workers() const noexcept {
    return active_.most_usual() + (options_.monitor.enabled ? options_.monitor.spares : 0);
  }
  [[nodiscard]] ActiveWorkers& active() noexcept { return active_; }
  [[nodiscard]] const ActiveWorkers& active() const noexcept { return active_; }
  [[nodiscard]] MonitorRest& monitor_rest() noexcept { return monitor_rest_; }

  // --- Sleeping workers ---

  // Returns true if the worker is asleep, or is inactive because it is not needed.
  [[nodiscard]] bool is_asleep(const Desk& desk) const noexcept {
    return desk.is_resting() || idle_.is_asleep(desk.index);
  }
  [[nodiscard]] bool all_are_asleep() const noexcept;
  // Returns the number of awake workers; it may be stale.
  [[nodiscard]] unsigned awake_hint() const noexcept {
    return active_.at_work() - idle_.asleep_hint();
  }
  // Returns whether each processor has an awake worker, so that another worker would share a
  // processor. A blocked worker counts as awake; the monitor wakes another worker in its place.
  [[nodiscard]] bool is_crowded() const noexcept { return awake_hint() >= active_.processors(); }
  [[nodiscard]] IdleSet& idle() noexcept { return idle_; }
  [[nodiscard]] const IdleSet& idle() const noexcept { return idle_; }
  [[nodiscard]] Watch& watch() noexcept { return watch_; }
  [[nodiscard]] DeadlockWatch& deadlock_watch() noexcept { return deadlock_watch_; }
  // Makes all workers end: sets the flag, and then unparks all workers.
  void stop() noexcept;
  [[nodiscard]] bool stopping() const noexcept {
    return stopping_.load(detail::acquire);  // [idle]
  }

  // --- The available work ---

  [[nodiscard]] InjectQueue& inject_queue() noexcept { return inject_queue_; }
  [[nodiscard]] bool has_outside_work_hint() const noexcept { return !inject_queue_.empty_hint(); }
  [[nodiscard]] bool has_work_hint() const noexcept;
  [[nodiscard]] EventSource& events() noexcept { return events_; }
  [[nodiscard]] bool watches_events() const noexcept { return events_.watches_anything(); }
  // Returns whether any descriptor is watched or any worker has a timer.
  [[nodiscard]] bool has_events_to_watch() const noexcept;
  // Returns the due time of the earliest timer of all awake workers, plus tuning::kOverdue.
  [[nodiscard]] Deadline earliest_timer_of_awake() const noexcept;
  // Any thread may call it, except the workers of this scheduler.
  void make_ready_from_outside(fibers::Fiber& fiber) noexcept;
  [[nodiscard]] Visitors& visitors() noexcept { return visitors_; }

  // --- Fibers ---

  [[nodiscard]] Stores& stores() noexcept { return stores_; }
  [[nodiscard]] const Stores& stores() const noexcept { return stores_; }
  [[nodiscard]] fibers::StackDepot& stacks() noexcept { return stores_.stacks(); }
  [[nodiscard]] fibers::FiberStore& fibers() noexcept { return stores_.fibers(); }
  [[nodiscard]] StackShortage& stack_shortage() noexcept { return stack_shortage_; }
  [[noreturn]] void throw_too_many_fibers();
  // Returns the number of spawned fibers that have not finished; exact while no fiber is running.
  [[nodiscard]] std::uint64_t live() const noexcept;
  [[nodiscard]] std::uint64_t spawned() const noexcept;
  // Plain threads use it to wait until all fibers have ended.
  [[nodiscard]] Quiescence& quiescence() noexcept { return quiescence_; }

 private:
  Scheduler& scheduler_;
  const SchedulerOptions options_;
  alignas(base::kCacheLine) ActiveWorkers active_;
  Desks desks_;
  alignas(base::kCacheLine) Stores stores_;
  InjectQueue inject_queue_;
  EventSource& events_;
  IdleSet idle_;
  DeadlockWatch deadlock_watch_{*this};
  StackShortage stack_shortage_{*this};
  Watch watch_;
  // Every worker that searches or falls asleep reads this flag; it is written once.
  alignas(base::kCacheLine) detail::Atomic<bool> stopping_{false};
  Quiescence quiescence_;
  MonitorRest monitor_rest_;
  // Every plain thread that spawns or wakes fibers writes this member.
  alignas(base::kCacheLine) Visitors visitors_;
};

}  // namespace weft::scheduler

// Starts and stops a scheduler and its threads. This file is optimized for size.
#include <algorithm>
#include <string>
#include <system_error>
#include <utility>
#include <weft/detail/fork.hpp>

#include "base/membarrier.hpp"
#include "base/refusal.hpp"
#include "base/shake.hpp"
#include "fibers/overflow.hpp"
#include "scheduler/registry.hpp"
#include "scheduler/scheduler.hpp"
#include "scheduler/upkeep/exit_watch.hpp"

namespace weft::scheduler {

using detail::relaxed;

namespace {

unsigned take_number() noexcept {
  static detail::Atomic<unsigned> next{0};
  return next.fetch_add(1, relaxed);  // Relaxed: the numbers only have to be distinct.
}

// Without a monitor, the number of awake workers does not depend on how many processors are in use.
ActiveWorkers::Setting active_setting(const SchedulerOptions& options) {
  if (!options.monitor.enabled) return {options.workers, 0, options.workers + 1};
  return {options.workers, options.processors.most_workers,
          std::max(options.processors.count(), 1U)};
}

}  // namespace

// The queue of a single worker is closed to other workers at first, because a closed queue is
// faster. Opening it later for spare workers requires base::prepare_barriers(). If that function
// fails, the queue is open from the start. The queues of spare workers are always open from the
// start.
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
      stores_(stack_main, this, options_.max_fibers,
              {options_.monitor.enabled ? options_.memory_goal : 0, options_.is_memory_goal_set}),
      events_(events),
      idle_(options_.workers, most_workers()) {
  if (options_.refuses_without_stacks) fibers().refuse_while_any(stack_shortage_.count());
}

Scheduler::Scheduler(SchedulerOptions options, EventSource& events)
    : shared_(*this, std::move(options), &Worker::stack_main, events),
      forks_(detail::forks()),
      outside_fibers_(shared_.fibers()),
      monitor_(shared_, [this](unsigned wanted) { call_workers(wanted); }) {
  events.serve(*this);
  workers_.reserve(shared_.most_workers());
  threads_.reserve(shared_.most_workers());
  if (shared_.options().report_overflow) fibers::install_overflow_report();
  // All workers must exist before the first of them runs.
  for (unsigned i = 0; i < shared_.options().workers; ++i) {
    make_worker();
    shared_.desks().publish();
  }
  if (shared_.options().report_overflow) fibers::watch_for_overflow(shared_.stacks().space());
  try {
    enter_registry(*this);
    for (const auto& worker : workers_) start_thread(*worker);
    monitor_.start();
  } catch (...) {
    stop();
    throw;
  }
}

Scheduler::~Scheduler() { stop(); }

void Scheduler::make_worker() {
  workers_.push_back(std::make_unique<Loop>(shared_, static_cast<unsigned>(workers_.size())));
  shared_.desks().add(workers_.back()->desk());
}

void Scheduler::start_thread(Loop& worker) {
  try {
    threads_.emplace_back([&worker] {
      const fibers::SignalStack signal_stack;
      const ExitWatch exit_watch;
      worker.run();
    });
  } catch (const std::system_error& refused) {
    throw base::refusal(refused.code(), "a Runtime cannot start the thread for worker " +
                                            std::to_string(worker.index() + 1) + " of " +
                                            std::to_string(shared_.options().workers));
  }
}

// Called by the monitor. Makes `wanted` workers active, or fewer if threads cannot be created.
void Scheduler::call_workers(unsigned wanted) noexcept {
  ActiveWorkers& active = shared_.active();
  const bool is_lower = active.want(wanted) > wanted;
  unsigned at_work = active.at_work();
  const auto others = shared_.desks().all().subspan(active.permanent());
  for (Desk* desk : others) {
    if (at_work >= wanted) break;
    if (!desk->is_resting() || !desk->end_rest()) continue;
    at_work = active.add_one();
    desk->unpark();
  }
  while (at_work < wanted && workers_.size() < shared_.most_workers()) {
    try {
      make_worker();
      start_thread(*workers_.back());
    } catch (const std::exception&) {
      // Memory or a thread was not available; the monitor tries again at its next sample.
      if (workers_.size() > threads_.size()) workers_.pop_back();
      return;
    }
    base::shake::delay();  // The worker may fall asleep and be woken before `active` counts it.
    shared_.desks().publish();
    if (workers_.back()->desk().end_rest()) at_work = active.add_one();
    workers_.back()->desk().unpark();
  }
  if (!is_lower || at_work <= wanted) return;
  // A sleeping surplus worker must be woken, so that it can become inactive. unpark() also reaches
  // a worker that is still about to sleep.
  unsigned surplus = at_work - wanted;
  for (auto at = others.rbegin(); at != others.rend(); ++at) {
    Desk& desk = **at;
    if (desk.is_resting()) continue;
    if (shared_.idle().is_asleep(desk.index)) {
      if (surplus == 0) continue;
      --surplus;
    }
    desk.unpark();
  }
}

void Scheduler::stop() noexcept {
  monitor_.stop();
  shared_.stop();
  for (auto& thread : threads_) thread.join();
  leave_registry(*this);
  fibers::unwatch_for_overflow(shared_.stacks().space());
  shared_.visitors().wait_until_none();
}

Scheduler* Scheduler::current() noexcept { return Choice().get(); }

bool Scheduler::lost_in_fork() const noexcept { return forks_ != detail::forks(); }

void Scheduler::retire() noexcept {
  (void)wait_idle_until(Deadline::never());
  stop_choosing(*this);
  // Waits for fibers that were spawned after the first wait ended.
  (void)wait_idle_until(Deadline::never());
}

bool Scheduler::wait_idle(Deadline deadline, Quiescence::Then then) noexcept {
  return shared_.quiescence().wait(deadline, then, [this] { return shared_.live() == 0; });
}

void make_core_small() noexcept { fibers::make_core_small(__builtin_frame_address(0)); }

}  // namespace weft::scheduler

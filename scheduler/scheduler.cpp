#include "scheduler/scheduler.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <weft/detail/guard.hpp>
#include <weft/error.hpp>
#include <weft/this_fiber.hpp>

#include "base/probes.hpp"
#include "base/refusal.hpp"
#include "base/shake.hpp"
#include "fibers/overflow.hpp"
#include "scheduler/registry.hpp"
#include "scheduler/sleep/sleep_protocol.hpp"
#include "scheduler/upkeep/exit_watch.hpp"
#include "scheduler/worker/current_worker.hpp"

namespace weft::scheduler {

using detail::relaxed;
using fibers::Fiber;

namespace {

// A task that first names its fiber. It is too large for a record, so names cost an allocation.
class NamedTask {
 public:
  using Shown = void;  // A dump cannot access the wrapped task.

  NamedTask(std::string_view name, detail::Task task) : task_(std::move(task)) {
    std::copy_n(name.data(), std::min(name.size(), sizeof name_ - 1), name_);
  }
  void operator()() {
    this_fiber::set_name(name_);
    task_.run();
  }
  [[nodiscard]] const void* join_target() const noexcept { return task_.join_target(); }

 private:
  char name_[32] = {};
  detail::Task task_;
};

}  // namespace

Scheduler::Scheduler(SchedulerOptions options, EventSource& events)
    : shared_(*this, std::move(options), &Worker::stack_main, events),
      forks_(forks()),
      outside_fibers_(shared_.fibers()),
      monitor_(shared_, [this](unsigned wanted) { call_workers(wanted); }) {
  events.serve(*this);
  workers_.reserve(shared_.most_workers());
  threads_.reserve(shared_.most_workers());
  if (shared_.options().report_overflow) fibers::install_overflow_report();
  // All workers must exist before the first one runs.
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

// The monitor calls it: that many workers must take part, as far as threads are available.
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
      // The system refuses memory or a thread; the next sample tries again.
      if (workers_.size() > threads_.size()) workers_.pop_back();
      return;
    }
    base::shake::delay();  // The worker may sleep, and be chosen, before it is counted.
    shared_.desks().publish();
    if (workers_.back()->desk().end_rest()) at_work = active.add_one();
    workers_.back()->desk().unpark();
  }
  if (!is_lower || at_work <= wanted) return;
  // As many sleeping workers as are too many must leave, too. The unpark is not lost if the worker
  // is about to sleep.
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

bool Scheduler::lost_in_fork() const noexcept { return forks_ != forks(); }

void Scheduler::retire() noexcept {
  (void)wait_idle_until(Deadline::never());
  stop_choosing(*this);
  // Fibers that were spawned meanwhile end, too.
  (void)wait_idle_until(Deadline::never());
}

std::uint8_t Scheduler::size_class_for(std::size_t stack_size) const {
  if (stack_size == 0) return static_cast<std::uint8_t>(shared_.options().size_class);
  const unsigned size_class = fibers::size_class_of(stack_size);
  if (size_class < fibers::kStackSizes) return static_cast<std::uint8_t>(size_class);
  throw std::system_error(make_error_code(Errc::invalid_stack_size),
                          "weft: SpawnOptions::stack_size = " + std::to_string(stack_size) +
                              ", at most " + std::to_string(fibers::kLargestStack));
}

void Scheduler::spawn(detail::Task&& task, const SpawnOptions& options, const void* caller) {
  const std::uint8_t size_class = size_class_for(options.stack_size);
  if (!options.name.empty()) task = NamedTask(options.name, std::move(task));
  if (options.pinned) return spawn_pinned(std::move(task), size_class, caller);
  if (runs_on_this_thread()) {
    current_worker()->spawn(std::move(task), size_class, caller);
  } else {
    spawn_from_outside(std::move(task), size_class, caller);
  }
}

// Treated as a call from outside, wherever it is made: the record belongs to no worker.
void Scheduler::spawn_pinned(detail::Task&& task, std::uint8_t size_class, const void* caller) {
  const Visitors::Visit visit(shared_.visitors());
  // The chosen worker may have no thread yet.
  const auto homes =
      std::min(static_cast<unsigned>(shared_.desks().size()), shared_.active().usual());
  const unsigned home =
      runs_on_this_thread() ? current_worker()->desk().index : next_home_.fetch_add(1, relaxed);
  const auto pinned_class = static_cast<std::uint8_t>(size_class | Fiber::kPinned);
  Fiber& fiber = make_fiber(std::move(task), pinned_class, caller);
  become_ready(fiber);
  shared_.desk(home % homes).send_pinned(fiber);
}

void Scheduler::spawn_from_outside(detail::Task&& task, std::uint8_t size_class,
                                   const void* caller) {
  const Visitors::Visit visit(shared_.visitors());
  shared_.make_ready_from_outside(make_fiber(std::move(task), size_class, caller));
}

Fiber& Scheduler::spawn_parked(detail::Task&& task, detail::WaitReason reason) {
  if (runs_on_this_thread()) return current_worker()->spawn_parked(std::move(task), reason);
  const Visitors::Visit visit(shared_.visitors());
  Fiber& fiber = make_fiber(std::move(task), size_class_for(0), nullptr);
  become_parked(fiber, reason);
  return fiber;
}

// Takes the record from the cache of plain threads.
Fiber& Scheduler::make_fiber(detail::Task&& task, std::uint8_t size_class, const void* caller) {
  Fiber* fiber = nullptr;
  {
    const detail::Guard lock(outside_mutex_);
    fiber = outside_fibers_.take();
  }
  if (fiber == nullptr) shared_.throw_too_many_fibers();
  fibers::happens_after(fiber);
  fiber->set_up(std::move(task), size_class, caller);
  shared_.visitors().note_spawn();
  WEFT_PROBE(spawn, fiber, caller);
  if (detail::is_tracing()) [[unlikely]]
    trace_fiber_from_outside(detail::TraceKind::spawn, *fiber);
  fibers::happens_before(fiber);
  return *fiber;
}

bool Scheduler::runs_on_this_thread() const noexcept {
  Worker* worker = current_worker();
  return worker != nullptr && &worker->shared() == &shared_;
}

bool Scheduler::wait_idle(Deadline deadline, Quiescence::Then then) noexcept {
  return shared_.quiescence().wait(deadline, then, [this] { return shared_.live() == 0; });
}

EventSource& current_events() {
  if (Worker* worker = current_worker()) return worker->shared().events();
  if (Scheduler* scheduler = Choice().get()) return scheduler->shared().events();
  throw std::system_error(make_error_code(Errc::no_runtime), "weft: no Runtime exists");
}

void Scheduler::events_started() noexcept {
  if (runs_on_this_thread()) return current_worker()->announcer().announce_event();
  announce_event(shared_);
}

void EventSource::announce_watch() noexcept {
  if (scheduler_ != nullptr) scheduler_->events_started();
}

void make_core_small() noexcept { fibers::make_core_small(__builtin_frame_address(0)); }

}  // namespace weft::scheduler

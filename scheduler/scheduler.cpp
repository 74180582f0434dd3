#include "scheduler/scheduler.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <weft/detail/guard.hpp>
#include <weft/error.hpp>
#include <weft/this_fiber.hpp>

#include "base/membarrier.hpp"
#include "base/probes.hpp"
#include "base/refusal.hpp"
#include "base/thread.hpp"
#include "scheduler/current_worker.hpp"
#include "scheduler/exit_watch.hpp"
#include "scheduler/registry.hpp"
#include "scheduler/sleep_protocol.hpp"
#include "scheduler/tuning.hpp"

namespace weft::scheduler {

using detail::acquire;
using detail::full_fence;
using detail::relaxed;
using detail::release;
using detail::seq_cst;
using fibers::Fiber;

namespace {

// Keeps a scheduler alive while a thread that is not one of its workers is inside. The fiber that
// it makes runnable may be the last one, whose end lets the scheduler be destroyed.
// Order: [visit] the visitor leaves (release) -> the destructor reads 0 (acquire).
class Visit {
 public:
  explicit Visit(detail::Atomic<std::uint32_t>& visitors) noexcept : visitors_(visitors) {
    // Relaxed: something that the caller holds, a parked fiber for one, keeps it alive until here.
    visitors_.fetch_add(1, relaxed);
  }
  ~Visit() { visitors_.fetch_sub(1, release); }  // [visit]
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

 private:
  detail::Atomic<std::uint32_t>& visitors_;
};

unsigned take_number() noexcept {
  static detail::Atomic<unsigned> next{0};
  return next.fetch_add(1, relaxed);  // Relaxed: only distinctness matters.
}

// Spawns and wakes of plain threads, for the trace. Before the fiber is published.
void trace_outside(detail::TraceKind kind, const Fiber& fiber) noexcept {
  const auto number = [](const void* address) {
    return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(address));
  };
  TraceEvent event{.kind = kind, .reason = fiber.wait_reason.load(relaxed)};
  event.words = {number(&fiber), number(fiber.site_hint()), number(fiber.task.type_hint())};
  trace_from_outside(event);
}

// A task that names its fiber first. Too large for a record, so names cost an allocation.
class NamedTask {
 public:
  using Shown = void;  // The wrapped task is out of a dump's reach.

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

// The queue of an only worker is closed to thieves, which makes it faster, if it can be opened
// later for spares. The spares' queues are open.
Scheduler::Scheduler(SchedulerOptions options, EventSource& events)
    : options_(std::move(options)),
      number_(take_number()),
      queues_are_open_(options_.workers > 1 ||
                       (options_.monitor.enabled && !base::prepare_barriers())),
      processors_(options_.monitor.enabled ? base::usable_processors() : most_workers() + 1),
      stacks_(&Worker::stack_main),
      fibers_(this, options_.max_fibers),
      events_(events),
      idle_(options_.workers, most_workers()),
      outside_fibers_(fibers_),
      forks_(forks()),
      workers_(std::make_unique<std::unique_ptr<Worker>[]>(most_workers())),
      monitor_(*this, options_.monitor),
      blocking_(options_.max_blocking_threads) {
  events_.serve(*this);
  if (options_.refuses_without_stacks) fibers_.refuse_while_any(stack_shortage_.count());
  threads_.reserve(most_workers());
  if (options_.report_overflow) {
    fibers::install_overflow_report();
    fibers::watch_for_overflow(stacks_.space());
  }
  // All exist before the first runs.
  for (unsigned i = 0; i < options_.workers; ++i) workers_[i] = std::make_unique<Worker>(*this, i);
  worker_count_.store(options_.workers, release);  // [spares]
  try {
    enter_registry(*this);
    for (unsigned i = 0; i < options_.workers; ++i) start_worker();
    monitor_.start();
  } catch (...) {
    stop();
    throw;
  }
}

Scheduler::~Scheduler() { stop(); }

// Starts the thread of the next worker that has none.
void Scheduler::start_worker() {
  const std::size_t number = threads_.size();
  try {
    threads_.emplace_back([&worker = *workers_[number]] {
      const fibers::SignalStack signal_stack;
      const ExitWatch exit_watch;
      worker.run();
    });
  } catch (const std::system_error& refused) {
    throw base::refusal(refused.code(), "a Runtime gets no thread for worker " +
                                            std::to_string(number + 1) + " of " +
                                            std::to_string(options_.workers));
  }
}

void Scheduler::want_spares(unsigned wanted) noexcept {
  spares_wanted_.store(wanted, relaxed);
  unsigned at_work = spares_at_work();
  for (const auto& worker : workers().subspan(options_.workers)) {
    if (at_work >= wanted) break;
    if (!worker->is_resting()) continue;
    at_work = spares_at_work_.fetch_add(1, relaxed) + 1;
    worker->call_up();
  }
  while (at_work < wanted && worker_count_.load(relaxed) < most_workers()) {
    const std::size_t count = worker_count_.load(relaxed);
    try {
      workers_[count] = std::make_unique<Worker>(*this, static_cast<unsigned>(count));
      start_worker();
    } catch (const std::exception&) {
      // The system refuses memory or a thread; the next sample asks again.
      return;
    }
    worker_count_.store(count + 1, release);  // [spares]
    at_work = spares_at_work_.fetch_add(1, relaxed) + 1;
    workers_[count]->call_up();
  }
  if (at_work <= wanted) return;
  // Spares that sleep leave, too.
  for (const auto& worker : workers().subspan(options_.workers)) {
    if (idle_.is_asleep(worker->index())) worker->unpark();
  }
}

bool Scheduler::lets_spare_leave() noexcept {
  unsigned at_work = spares_at_work();
  while (at_work > spares_wanted_.load(relaxed)) {
    if (spares_at_work_.compare_exchange_weak(at_work, at_work - 1, relaxed, relaxed)) return true;
  }
  return false;
}

bool Scheduler::is_asleep(const Worker& worker) const noexcept {
  return worker.is_resting() || idle_.is_asleep(worker.index());
}

bool Scheduler::all_are_asleep() const noexcept {
  return std::ranges::all_of(workers(), [this](const auto& worker) { return is_asleep(*worker); });
}

std::size_t Scheduler::threads() const noexcept {
  return workers().size() + (monitor_.is_running() ? 1 : 0);
}

void Scheduler::stop() noexcept {
  monitor_.stop();
  stopping_.store(true, seq_cst);  // [idle]
  full_fence();                    // [idle]
  for (const auto& worker : workers()) worker->unpark();
  for (auto& thread : threads_) thread.join();
  leave_registry(*this);
  fibers::unwatch_for_overflow(stacks_.space());
  while (visitors_.load(acquire) != 0) base::yield_processor();  // [visit]
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
  if (stack_size == 0) return static_cast<std::uint8_t>(options_.size_class);
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

// Works as from outside, wherever the call is: the record is no worker's own.
void Scheduler::spawn_pinned(detail::Task&& task, std::uint8_t size_class, const void* caller) {
  const Visit visit(visitors_);
  const unsigned home =
      runs_on_this_thread() ? current_worker()->index() : next_home_.fetch_add(1, relaxed);
  const auto pinned_class = static_cast<std::uint8_t>(size_class | Fiber::kPinned);
  Fiber& fiber = make_fiber(std::move(task), pinned_class, caller);
  become_ready(fiber);
  worker(home % options_.workers).push_pinned(fiber);
}

void Scheduler::spawn_from_outside(detail::Task&& task, std::uint8_t size_class,
                                   const void* caller) {
  const Visit visit(visitors_);
  make_ready_from_outside(make_fiber(std::move(task), size_class, caller));
}

Fiber& Scheduler::spawn_parked(detail::Task&& task, detail::WaitReason reason) {
  if (runs_on_this_thread()) return current_worker()->spawn_parked(std::move(task), reason);
  const Visit visit(visitors_);
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
  if (fiber == nullptr) throw_too_many_fibers();
  fibers::happens_after(fiber);
  fiber->set_up(std::move(task), size_class, caller);
  spawned_outside_.fetch_add(1, release);  // [outside]
  WEFT_PROBE(spawn, fiber, caller);
  if (detail::is_tracing()) [[unlikely]]
    trace_outside(detail::TraceKind::spawn, *fiber);
  fibers::happens_before(fiber);
  return *fiber;
}

void Scheduler::throw_too_many_fibers() const {
  if (const std::size_t waiting = stack_shortage_.waiting();
      waiting != 0 && options_.refuses_without_stacks) {
    throw std::system_error(make_error_code(Errc::too_many_fibers),
                            "weft: RuntimeOptions::refuse_without_stacks: " +
                                std::to_string(waiting) + " fibers wait for a stack");
  }
  throw std::system_error(
      make_error_code(Errc::too_many_fibers),
      "weft: RuntimeOptions::max_fibers = " + std::to_string(options_.max_fibers));
}

void Scheduler::make_ready_from_outside(Fiber& fiber) noexcept {
  const Visit visit(visitors_);
  become_ready(fiber);
  WEFT_PROBE(wake, &fiber, -1);
  if (detail::is_tracing()) [[unlikely]]
    trace_outside(detail::TraceKind::ready, fiber);
  if (fiber.is_pinned()) [[unlikely]]
    return home_of(fiber).push_pinned(fiber);
  inject_queue_.push(fiber);
  announce_from_outside(*this);
}

bool Scheduler::has_work_hint() const noexcept {
  return has_outside_work_hint() ||
         std::ranges::any_of(workers(), [](const auto& worker) { return worker->has_work_hint(); });
}

bool Scheduler::has_events_to_watch() const noexcept {
  return events_.watches_anything() || std::ranges::any_of(workers(), [](const auto& worker) {
           return !worker->next_timer_hint().is_never();
         });
}

Deadline Scheduler::earliest_timer_of_awake() const noexcept {
  std::int64_t earliest = Deadline::never().nanoseconds();
  for (const auto& worker : workers()) {
    const Deadline next = worker->next_timer_hint();
    if (next.is_never() || is_asleep(*worker)) continue;
    earliest = std::min(earliest, next.nanoseconds() + tuning::kOverdue);
  }
  return Deadline::at_nanoseconds(earliest);
}

bool Scheduler::stopping() const noexcept {
  return stopping_.load(acquire);  // [idle]
}

// Finished fibers are summed before spawned ones: both only grow, so when the sums are equal,
// there was a moment in between at which nothing was alive.
std::uint64_t Scheduler::live() const noexcept {
  std::uint64_t finished = 0;
  for (const auto& worker : workers()) finished += worker->recorder().counters().finished.get();
  return spawned() - finished;
}

std::uint64_t Scheduler::spawned() const noexcept {
  std::uint64_t sum = spawned_outside_.load(acquire);  // [outside]
  for (const auto& worker : workers()) sum += worker->recorder().counters().spawned.get();
  return sum;
}

bool Scheduler::runs_on_this_thread() const noexcept {
  Worker* worker = current_worker();
  return worker != nullptr && &worker->scheduler() == this;
}

// A worker about to sleep calls it, after a full fence.
void Scheduler::worker_sleeps() noexcept {
  if (draining_.load(relaxed) == 0) return;  // [drain], by the fence in Worker::sleep
  drain_epoch_.fetch_add(1, release);        // [drain]
  base::futex_wake_all(drain_epoch_);
}

bool Scheduler::wait_idle(Deadline deadline, Then then) noexcept {
  draining_.fetch_add(1, seq_cst);  // [drain]
  bool idle = false;
  for (;;) {
    const std::uint32_t epoch = drain_epoch_.load(acquire);  // [drain]
    full_fence();                                            // [drain]
    idle = live() == 0;
    if (idle || deadline.passed()) break;
    // While it is counted it only looks at live(), so as long as a fiber lives it does nothing.
    if (then == Then::waits_on) ParkedThreads::begin();
    base::futex_wait(drain_epoch_, epoch, deadline);
    if (then == Then::waits_on) ParkedThreads::end();
  }
  draining_.fetch_sub(1, relaxed);
  return idle;
}

EventSource& current_events() {
  if (Worker* worker = current_worker()) return worker->scheduler().events();
  if (Scheduler* scheduler = Choice().get()) return scheduler->events();
  throw std::system_error(make_error_code(Errc::no_runtime), "weft: no Runtime exists");
}

void Scheduler::events_started() noexcept {
  if (runs_on_this_thread()) return current_worker()->announce_event();
  announce_event(*this);
}

void EventSource::announce_watch() noexcept {
  if (scheduler_ != nullptr) scheduler_->events_started();
}

}  // namespace weft::scheduler

#include "scheduler/scheduler.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <weft/detail/guard.hpp>
#include <weft/this_fiber.hpp>

#include "base/probes.hpp"
#include "scheduler/refusals.hpp"
#include "scheduler/registry.hpp"
#include "scheduler/sleep/sleep_protocol.hpp"
#include "scheduler/worker/current_worker.hpp"

namespace weft::scheduler {

using detail::relaxed;
using fibers::Fiber;

namespace {

// A task that names its fiber before it runs. The task is too large for a fiber's record, so a name
// costs an allocation.
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

std::uint8_t Scheduler::size_class_for(std::size_t stack_size) const {
  if (stack_size == 0) return static_cast<std::uint8_t>(shared_.options().size_class);
  const unsigned size_class = fibers::size_class_of(stack_size);
  if (size_class < fibers::kStackSizes) return static_cast<std::uint8_t>(size_class);
  throw_stack_size(stack_size);
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

// A pinned spawn counts as a spawn by a plain thread, even if a fiber makes it, because the fiber's
// record comes from the cache for plain threads.
void Scheduler::spawn_pinned(detail::Task&& task, std::uint8_t size_class, const void* caller) {
  const Visitors::Visit visit(shared_.visitors());
  // usual() may count workers that do not exist yet.
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

// Takes the fiber's record from the cache that all plain threads share.
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

EventSource& current_events() {
  if (Worker* worker = current_worker()) return worker->shared().events();
  if (Scheduler* scheduler = Choice().get()) return scheduler->shared().events();
  throw_no_runtime("weft: no Runtime exists");
}

void Scheduler::events_started() noexcept {
  if (runs_on_this_thread()) return current_worker()->announcer().announce_event();
  announce_event(shared_);
}

void EventSource::announce_watch() noexcept {
  if (scheduler_ != nullptr) scheduler_->events_started();
}

}  // namespace weft::scheduler

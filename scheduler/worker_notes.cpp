// For those who watch: what a worker notes of what it does.
#include "base/panic.hpp"
#include "base/probes.hpp"
#include "scheduler/current_worker.hpp"
#include "scheduler/scheduler.hpp"
#include "scheduler/worker.hpp"

namespace weft::scheduler {

using detail::relaxed;
using detail::TraceKind;
using fibers::Fiber;
using fibers::FiberState;

namespace {

std::uint64_t number_of(const void* address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address);
}

// 0 if it has not started, or has ended.
std::uint64_t id_of(const Fiber& fiber) noexcept {
  const fibers::Stack* stack = fiber.stack.load(relaxed);
  return stack == nullptr ? 0 : stack->fiber_id.load(relaxed);
}

}  // namespace

// At a moment when the worker looks at the clock anyway.
void Worker::begin_watching(std::int64_t now) noexcept {
  if (sampler_.is_due(now)) sampler_.begin(now);
  trace_.look(scheduler_.number(), index_);
  choose_watches();
}

// By the constructor. A simulation decides at each decision, and is told of spawns and ends.
void Worker::begin_watching_simulation() noexcept {
  WEFT_CHECK(!detail::is_simulated(),
             "a Runtime was made inside a simulation, which has one thread: spawn fibers instead");
  decisions_left_.store(pace_.allotted(), relaxed);
  choose_watches();
}

// A fiber that is followed may wait for long: until it runs, what else becomes ready is not noted.
void Worker::choose_watches() noexcept {
  const bool is_simulated = scheduler_.options().simulation != nullptr;
  watches_ready_ = sampler_.is_armed() || trace_.is_on() || is_simulated;
  watches_switches_ = sampler_.is_following() || trace_.is_on() || is_simulated;
}

void Worker::watch_now() noexcept {
  trace_.look(scheduler_.number(), index_);
  choose_watches();
  if (const Fiber* fiber = current_fiber(); fiber != nullptr && trace_.is_on()) {
    trace_.put(TraceKind::run, number_of(fiber), id_of(*fiber));
    // It was given its name before.
    note_text(TraceKind::name, fiber->stack.load(relaxed)->name.view());
  }
}

void Worker::note_spawn_parked(Fiber& fiber) noexcept {
  if (auto* simulation = scheduler_.options().simulation) simulation->spawned(fiber);
}

void Worker::note_spawn(Fiber& fiber) noexcept {
  if (auto* simulation = scheduler_.options().simulation) simulation->spawned(fiber);
  if (sampler_.ready(fiber)) choose_watches();
  if (!trace_.is_on()) return;
  trace_.put(TraceKind::spawn, number_of(&fiber), number_of(fiber.site_hint()),
             number_of(fiber.task.type_hint()));
}

void Worker::note_ready(const Fiber& fiber) noexcept {
  if (sampler_.ready(fiber)) choose_watches();
  if (!trace_.is_on()) return;
  trace_.put(TraceKind::ready, number_of(&fiber), id_of(fiber), 0, fiber.wait_reason.load(relaxed));
}

void Worker::note_switch(Departure how, const Fiber* next) noexcept {
  if (sampler_.run(next)) choose_watches();
  if (auto* simulation = scheduler_.options().simulation; simulation != nullptr) {
    if (how == Departure::ended) simulation->ended(*current_fiber());
  }
  if (!trace_.is_on()) return;
  const std::uint64_t now = base::ticks();  // Both events are of one moment.
  if (const Fiber* fiber = current_fiber()) {
    const TraceKind kind = how == Departure::ended     ? TraceKind::end
                           : how == Departure::inlines ? TraceKind::inlined
                                                       : TraceKind::leave;
    trace_.put_at(now, kind, number_of(fiber), id_of(*fiber), 0, fiber->wait_reason.load(relaxed));
  }
  if (next == nullptr) {
    trace_.put_at(now, TraceKind::idle);
  } else {
    trace_.put_at(now, TraceKind::run, number_of(next), id_of(*next));
  }
}

void Worker::note_stolen(Worker& victim) noexcept {
  counters_.steals.add_one();
  WEFT_PROBE(steal, index_, victim.index_);
  if (sampler_.adopt(victim.sampler_)) choose_watches();
  note(TraceKind::steal, victim.index_);
}

void Worker::note_text(TraceKind kind, std::string_view text) noexcept {
  const Fiber* fiber = current_fiber();
  if (trace_.is_on()) trace_.put_text(kind, fiber == nullptr ? 0 : id_of(*fiber), text);
}

Worker::Times Worker::times(std::int64_t now) const noexcept {
  // It may have begun, or gone to sleep, after `now`.
  const auto time_since = [now](std::int64_t begun) {
    return begun == 0 || begun > now ? 0 : now - begun;
  };
  const auto ended = static_cast<std::int64_t>(counters_.parked_time.get());
  return {time_since(born_.load(relaxed)), ended + time_since(parked_since_.load(relaxed))};
}

}  // namespace weft::scheduler

namespace weft::detail {

void trace_text(TraceKind kind, std::string_view text) noexcept {
  if (scheduler::Worker* worker = scheduler::current_worker()) {
    worker->note_text(kind, text);
  } else {
    scheduler::trace_text_from_outside(kind, text);
  }
}

}  // namespace weft::detail

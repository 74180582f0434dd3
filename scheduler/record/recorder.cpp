#include "scheduler/record/recorder.hpp"

#include "scheduler/simulation.hpp"

namespace weft::scheduler {

using detail::relaxed;
using detail::TraceKind;
using fibers::Fiber;

namespace {

std::uint64_t number_of(const void* address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address);
}

// Returns the fiber's number; 0 if the fiber has not started, or has ended.
std::uint64_t id_of(const Fiber& fiber) noexcept {
  const fibers::Stack* stack = fiber.stack.load(relaxed);
  return stack == nullptr ? 0 : stack->fiber_id.load(relaxed);
}

}  // namespace

void Recorder::begin(std::int64_t now) noexcept {
  if (sampler_.is_due(now)) sampler_.begin(now);
  trace_.look(runtime_, worker_);
  waits_.look();
  choose_watches();
}

// While the sampler follows a fiber, the recorder does not tell the sampler which other fibers
// become ready.
void Recorder::choose_watches() noexcept {
  const bool is_simulated = simulation_ != nullptr;
  watches_ready_ = sampler_.is_armed() || trace_.is_on() || is_simulated;
  watches_switches_ = sampler_.is_following() || trace_.is_on() || waits_.is_on() || is_simulated;
}

void Recorder::look_at_trace() noexcept {
  trace_.look(runtime_, worker_);
  choose_watches();
  if (const Fiber* fiber = running(); fiber != nullptr && trace_.is_on()) {
    trace_.put(TraceKind::run, number_of(fiber), id_of(*fiber));
    // The fiber was named before the trace began, so the trace does not contain the name yet.
    note_text(TraceKind::name, fiber->stack.load(relaxed)->name.view());
  }
}

void Recorder::note_spawn_parked(Fiber& fiber) noexcept {
  if (simulation_ != nullptr) simulation_->spawned(fiber);
}

void Recorder::note_spawn(Fiber& fiber) noexcept {
  if (simulation_ != nullptr) simulation_->spawned(fiber);
  if (sampler_.ready(fiber)) choose_watches();
  if (!trace_.is_on()) return;
  trace_.put(TraceKind::spawn, number_of(&fiber), number_of(fiber.site_hint()),
             number_of(fiber.task.type_hint()));
}

void Recorder::note_ready(const Fiber& fiber) noexcept {
  if (sampler_.ready(fiber)) choose_watches();
  if (!trace_.is_on()) return;
  trace_.put(TraceKind::ready, number_of(&fiber), id_of(fiber), 0, fiber.reason());
}

void Recorder::note_switch(Departure how, const Fiber* next) noexcept {
  if (sampler_.run(next)) choose_watches();
  if (simulation_ != nullptr && how == Departure::ended) simulation_->ended(*running());
  if (waits_.is_on()) note_waits(how, next, __builtin_return_address(0));
  if (!trace_.is_on()) return;
  const std::uint64_t now = base::ticks();  // Both events have the same time.
  if (const Fiber* fiber = running()) {
    const TraceKind kind = how == Departure::ended     ? TraceKind::end
                           : how == Departure::inlines ? TraceKind::inlined
                                                       : TraceKind::leave;
    trace_.put_at(now, kind, number_of(fiber), id_of(*fiber), 0, fiber->reason());
  }
  if (next == nullptr) {
    trace_.put_at(now, TraceKind::idle);
  } else {
    trace_.put_at(now, TraceKind::run, number_of(next), id_of(*next));
  }
}

void Recorder::note_waits(Departure how, const Fiber* next, const void* caller) noexcept {
  const Fiber* const fiber = running();
  if (fiber != nullptr && how == Departure::left) waits_.leaves(*fiber, caller);
  if (next != nullptr) waits_.runs(*next);
}

void Recorder::stolen_from(Recorder& victim) noexcept {
  counters_.steals.add_one();
  WEFT_PROBE(steal, worker_, victim.worker_);
  if (sampler_.adopt(victim.sampler_)) choose_watches();
  note(TraceKind::steal, victim.worker_);
}

void Recorder::sleeps(std::int64_t now) noexcept {
  parked_since_.store(now, relaxed);
  note(TraceKind::sleep);
}

void Recorder::wakes(std::int64_t now) noexcept {
  const std::int64_t since = parked_since_.load(relaxed);
  counters_.parked_time.add(static_cast<std::uint64_t>(now - since));
  parked_since_.store(0, relaxed);
  note(TraceKind::awake);
}

void Recorder::note_text(TraceKind kind, std::string_view text) noexcept {
  const Fiber* fiber = running();
  if (trace_.is_on()) trace_.put_text(kind, fiber == nullptr ? 0 : id_of(*fiber), text);
}

Recorder::Times Recorder::times(std::int64_t now) const noexcept {
  // The thread may have started, or fallen asleep, after `now` was read.
  const auto time_since = [now](std::int64_t begun) {
    return begun == 0 || begun > now ? 0 : now - begun;
  };
  const auto ended = static_cast<std::int64_t>(counters_.parked_time.get());
  return {time_since(born_.load(relaxed)), ended + time_since(parked_since_.load(relaxed))};
}

}  // namespace weft::scheduler

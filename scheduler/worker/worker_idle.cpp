// Between fibers: what a worker does on its idle stack.
#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/thread.hpp"
#include "scheduler/machine_clock.hpp"
#include "scheduler/shared.hpp"
#include "scheduler/sleep/sleep_protocol.hpp"
#include "scheduler/tuning.hpp"
#include "scheduler/upkeep/exit_watch.hpp"
#include "scheduler/worker/current_worker.hpp"
#include "scheduler/worker/worker.hpp"

extern "C" {
static constinit const weft::detail::Turn never_over;
__thread weft::scheduler::Worker* weft_current_worker = nullptr;
__thread const weft::detail::Turn* weft_current_turn = &never_over;
}

namespace weft::scheduler {

using detail::relaxed;
using fibers::Fiber;
using fibers::Stack;

#if !defined(__x86_64__)
[[gnu::noinline]] Worker* current_worker() noexcept {
  Worker* worker = weft_current_worker;
  asm volatile("" : "+r"(worker) : : "memory");
  return worker;
}
#endif

}  // namespace weft::scheduler

#if !defined(__x86_64__)
[[gnu::noinline]] bool weft::detail::is_turn_over() noexcept {
  const Turn* turn = weft_current_turn;
  asm volatile("" : "+r"(turn) : : "memory");
  return turn->over.load(relaxed);
}
#endif

namespace weft::scheduler {

void Worker::run() noexcept {
  desk_.recorder.begins_life(machine_now());
  desk_.thread.adopt();
  weft_current_worker = this;
  weft_current_turn = &desk_.turn;
  thread_ = fibers::ThreadState::of_this_thread();
  idle_stack_.sanitizer.adopt_thread();
  char name[16];
  (void)std::snprintf(name, sizeof name, "weft-%u", desk_.index);
  base::set_thread_name(name);
  while (Fiber* fiber = find_work()) {
    end_search(*this);
    prepare_for_run();
    enter(*fiber);
  }
  thread_.between.destroy();
  weft_current_turn = &never_over;
  weft_current_worker = nullptr;
}

void Worker::enter(Fiber& fiber) noexcept {
  Stack* stack = fiber.stack.load(relaxed);
  if (stack == nullptr) {
    stack = take_stack(fiber);
    if (stack == nullptr) return out_of_stacks(fiber);
    bind_to_switch(fiber, *stack);
    stack->home = desk_.index;
  }
  desk_.recorder.runs(Recorder::Departure::left, fiber);
  fibers::switch_to(
      thread_, idle_stack_, *stack, [](void*) noexcept {}, nullptr);
}

// Has a sleeper get up, if need be, for what waits here or for what comes.
void Worker::prepare_for_run() noexcept {
  if (!shared_.idle().anyone_asleep()) return;
  if (expects_long_runs()) mind_watch_while_awake();
  if (pace_.may_call() && pace_.expects_wait(desk_.queue.size_hint()) &&
      shared_.idle().wants_wake_hint()) {
    call_for_help();
  }
}

// Looks at all that local work would keep waiting forever.
void Worker::look_around() noexcept {
  const std::int64_t now = machine_now();
  look_due_ = false;
  desk_.queue.set_time(now);
  look_at_pace(now);
  (void)take_injected();
  if (shared_.stack_shortage().anyone_waits()) [[unlikely]]
    (void)serve_aside();
  if (now - last_reach_ >= tuning::kReachPeriod) {
    last_reach_ = now;
    desk_.queue.reach_oldest();
  }
  run_own_timers(now);
  if (now - last_poll_ > tuning::kPollInterval) poll(now);
  visit_others(now);
}

// Decides when the next look is, and whether a worker that sleeps should get up. Runs may become
// longer all of a sudden; then the monitor asks for a look.
void Worker::look_at_pace(std::int64_t now) noexcept {
  const Pace::Progress progress = pace_.look(now, desk_.recorder.counters().switches.get());
  if (run_lengths_.are_long(progress)) pace_.note_long_run(now);
  if (!shared_.idle().anyone_asleep()) {
    desk_.decisions_left.store(pace_.allot(progress, tuning::kLookPeriod), relaxed);
    return;
  }
  desk_.decisions_left.store(pace_.allot(progress, tuning::kPatience), relaxed);
  const bool crowded = shared_.is_crowded();
  if (!crowded) mind_watch_while_awake();
  const std::int64_t patience = crowded ? tuning::kPatienceWhenCrowded : tuning::kPatience;
  if (!pace_.finds_waiting(patience, desk_.queue.size_hint())) return;
  pace_.note_waiting();
  wake_one(shared_);
}

bool Worker::take_injected() noexcept {
  const Chain chain = shared_.inject_queue().take_all();
  if (chain.is_empty()) return false;
  desk_.queue.push_last(chain);
  return true;
}

void Worker::run_own_timers(std::int64_t now) noexcept {
  if (desk_.recorder.is_due(now)) [[unlikely]]
    desk_.recorder.begin(now);
  if (desk_.timers.due_hint(now)) (void)run_timers(desk_.timers, now);
}

// Looks at the descriptors, without waiting for them.
void Worker::poll(std::int64_t now) noexcept {
  if (!shared_.events().watches_anything()) return;
  last_poll_ = now;
  note_events(shared_.events().wait(Deadline::past()));
}

void Worker::note_events(std::size_t woken) noexcept {
  desk_.recorder.counters().polls.add_one();
  if (woken != 0) desk_.recorder.note(detail::TraceKind::poll, woken);
}

// Waits, and counts the time that it takes.
template <class Wait>
auto Worker::while_parked(Wait wait) noexcept {
  struct Count {
    explicit Count(Recorder& its) noexcept : recorder(its) { recorder.sleeps(machine_now()); }
    ~Count() { recorder.wakes(machine_now()); }
    Count(const Count&) = delete;
    Count& operator=(const Count&) = delete;
    Recorder& recorder;
  };
  const Count count(desk_.recorder);
  return wait();
}

// Returns the next fiber to run, whatever it takes; nullptr when the scheduler stops.
Fiber* Worker::find_work() noexcept {
  for (;;) {
    if (look_due_) {
      look_around();
    } else {
      run_own_timers(machine_now());
    }
    if (Fiber* fiber = std::exchange(handed_over_, nullptr)) return fiber;
    if (is_free_to_leave() && shared_.spares().lets_one_leave()) {
      rest();
      if (shared_.stopping()) return nullptr;
    }
    if (Fiber* fiber = take_own_work()) return fiber;
    if (take_injected()) continue;
    if (shared_.stack_shortage().anyone_waits() && serve_aside()) [[unlikely]]
      continue;
    // What the kernel has is at hand; but a worker that was called is to help, and one that will
    // sleep at once sees descriptors in its sleep.
    if (!searching_ && is_search_worthwhile()) {
      poll(machine_now());
      if (desk_.has_work_hint() || !desk_.pinned.empty_hint()) continue;
    }
    Fiber* found = search(*this);
    if (found == nullptr) {
      if (!while_parked([this] { return sleep(*this); })) return nullptr;
      shared_.monitor_rest().work_begins();
    }
    pace_.resume(machine_now(), desk_.recorder.counters().switches.get());
    desk_.decisions_left.store(pace_.allotted(), relaxed);
    if (found != nullptr) return found;
  }
}

// In a simulation the worker hands over all that is ready, and gets one fiber back.
Fiber* Worker::take_chosen() noexcept {
  detail::Simulation& simulation = *shared_.options().simulation;
  while (Fiber* fiber = desk_.pinned.take()) simulation.ready(*fiber);
  while (Fiber* fiber = desk_.queue.pop()) simulation.ready(*fiber);
  bool ends_turn = false;
  Fiber* fiber = simulation.take(ends_turn);
  desk_.turn.over.store(ends_turn, relaxed);
  return fiber;
}

// Takes fibers that may run nowhere else, and fibers that others might take, too, alternately.
Fiber* Worker::take_own_work() noexcept {
  if (shared_.options().simulation != nullptr) [[unlikely]]
    return take_chosen();
  Fiber* fiber = desk_.pinned.take_or([this] { return desk_.queue.pop(); });
  if (!desk_.pinned.empty_hint()) desk_.ask_to_look();
  return fiber;
}

// When a sleeper gets up by itself, events apart.
Deadline Worker::sleep_limit() noexcept {
  Deadline limit = Deadline::never();
  if (shared_.deadlock_watch().is_on_watch(desk_.index)) {
    limit = std::min(limit, watch_pauses_.next());
  }
  const std::int64_t now = machine_now();
  if (shared_.stores().has_surplus_hint()) {
    limit = std::min(limit, Deadline::at_nanoseconds(now + tuning::kTrimDelay));
  }
  if (must_look_itself())
    limit = std::min(limit, Deadline::at_nanoseconds(now + tuning::kUnmonitored));
  return prepare_aside_for_sleep(limit, now);
}

// Without a monitor no thread wakes this one for what another worker, awake, has queued and does
// not run.
bool Worker::must_look_itself() const noexcept {
  const unsigned itself = shared_.is_asleep(desk_) ? 0 : 1;
  return !shared_.options().monitor.enabled && shared_.awake_hint() > itself;
}

// Sleeps in the event source, or on the futex.
bool Worker::wait_for_events(Deadline deadline, bool in_source) noexcept {
  if (!in_source) return desk_.park_until(deadline);
  std::size_t found = 0;
  const bool unparked = desk_.wait_in_source(deadline, [this, &found](std::size_t woken) {
    note_events(woken);
    found = woken;
  });
  return unparked || found > 0;
}

bool Worker::has_own_work() const noexcept {
  return desk_.has_work_hint() || !desk_.pinned.empty_hint() ||
         (is_free_to_leave() && shared_.spares().wants_one_to_leave());
}

void Worker::begin_idling() noexcept {
  const std::int64_t now = desk_.recorder.asleep_since();
  const Pace::Progress progress = pace_.look(now, desk_.recorder.counters().switches.get());
  if (run_lengths_.are_long(progress)) pace_.note_long_run(now);
  shared_.deadlock_watch().take_over(desk_.index);
  watch_pauses_.restart();
}

// Runs after a full fence.
void Worker::note_sleep() noexcept {
  desk_.recorder.counters().sleeps.add_one();
  shared_.quiescence().worker_sleeps();
}

// Does the chores of a worker that is not needed. True when it may have made work.
bool Worker::do_chores() noexcept {
  if (shared_.stack_shortage().anyone_waits() && serve_aside()) return true;
  if (must_look_itself()) return shared_.has_work_hint();
  give_memory_back();
  return report_deadlock();
}

// A spare that is not needed any more leaves what it has to others. Returns when it is called up
// again, or when the scheduler stops.
void Worker::rest() noexcept {
  for (Chain chain = desk_.queue.take_all(); Fiber* fiber = chain.take_first();) {
    shared_.inject_queue().push(*fiber);
  }
  stacks_.empty();
  fibers_.empty();
  end_search(*this);
  announce_from_outside(shared_);
  desk_.begin_rest();
  while_parked([this] {
    while (desk_.is_resting() && !shared_.stopping()) (void)desk_.park_until(Deadline::never());
  });
}

// Works in small steps, until all is given back or there is something better to do: no thread would
// wake this worker meanwhile.
void Worker::give_memory_back() noexcept {
  while (!shared_.has_work_hint() && !shared_.stopping() && !desk_.timers.due_hint(machine_now())) {
    if (!shared_.stores().trim_some()) return;
  }
}

// Looks whether anything can still happen, if it is time, and this worker's turn. True if it has
// reported that nothing can: the program may have done something about it.
bool Worker::report_deadlock() noexcept {
  DeadlockWatch& watch = shared_.deadlock_watch();
  const auto& report = shared_.options().on_deadlock;
  if (!watch_pauses_.next().passed() || !watch.is_on_watch(desk_.index)) return false;
  // Without fibers there is nothing to watch: the next one wakes a worker, which takes over.
  if (!report || shared_.live() == 0) {
    watch_pauses_.stop();
    return false;
  }
  const DeadlockWatch::Finding found = watch.find(desk_.index);
  if (found == DeadlockWatch::Finding::waiting) {
    watch_pauses_.stop();  // The worker that is woken then begins anew.
    return false;
  }
  watch_pauses_.lengthen();
  if (const Deadline timer = earliest_event(Deadline::never()); !timer.is_never()) {
    watch_pauses_.put_off(timer);
  }
  if (found != DeadlockWatch::Finding::deadlock) return false;
  const ExitWatch::Pause pause;
  report(shared_.scheduler());
  return true;
}

}  // namespace weft::scheduler

#include "scheduler/worker/loop.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/thread.hpp"
#include "scheduler/machine_clock.hpp"
#include "scheduler/shared.hpp"
#include "scheduler/sleep/sleep_protocol.hpp"
#include "scheduler/tuning.hpp"
#include "scheduler/upkeep/exit_watch.hpp"

namespace weft::scheduler {

using detail::relaxed;
using fibers::Fiber;

void Loop::run() noexcept {
  worker_.begin_thread();
  char name[16];
  (void)std::snprintf(name, sizeof name, "weft-%u", desk_.index);
  base::set_thread_name(name);
  while (Fiber* fiber = find_work()) {
    end_search(*this);
    prepare_for_run();
    worker_.enter(*fiber);
  }
  worker_.end_thread();
}

bool Loop::is_free_to_leave() const noexcept {
  return !shared_.active().is_permanent(desk_.index) && !desk_.pinned.keeps_worker();
}

// Wakes a sleeping worker if this worker may reach its queued fibers or next events too late.
void Loop::prepare_for_run() noexcept {
  if (!shared_.idle().anyone_asleep()) return;
  if (worker_.announcer().expects_long_runs()) worker_.announcer().mind_watch_while_awake();
  if (worker_.announcer().pace().may_call() &&
      worker_.announcer().pace().expects_wait(desk_.queue.size_hint()) &&
      shared_.idle().wants_wake_hint()) {
    worker_.announcer().call_for_help();
  }
}

// Checks everything that a worker with local work would otherwise never reach.
void Loop::look_around() noexcept {
  const std::int64_t now = machine_now();
  desk_.queue.set_time(now);
  look_at_pace(now);
  (void)searcher_.take_injected();
  if (shared_.stack_shortage().anyone_waits()) [[unlikely]]
    (void)serve_stack_waits();
  if (now - last_reach_ >= tuning::kReachPeriod) {
    last_reach_ = now;
    desk_.queue.reach_oldest();
  }
  run_own_timers(now);
  if (now - last_poll_ > tuning::kPollInterval) poll(now);
  searcher_.visit_others(now);
}

// Decides when the next look is due, and whether to wake a sleeping worker. If runs suddenly become
// longer, the monitor requests a look.
void Loop::look_at_pace(std::int64_t now) noexcept {
  const Pace::Progress progress =
      worker_.announcer().pace().look(now, desk_.recorder.counters().switches.get());
  if (run_lengths_.are_long(progress)) worker_.announcer().pace().note_long_run(now);
  if (shared_.desks().size() == 1) worker_.announcer().pace().note_alone();
  if (!shared_.idle().anyone_asleep()) {
    desk_.decisions_left.store(worker_.announcer().pace().allot(progress, tuning::kLookPeriod),
                               relaxed);
    return;
  }
  desk_.decisions_left.store(worker_.announcer().pace().allot(progress, tuning::kPatience),
                             relaxed);
  const bool crowded = shared_.is_crowded();
  if (!crowded) worker_.announcer().mind_watch_while_awake();
  const std::int64_t patience = crowded ? tuning::kPatienceWhenCrowded : tuning::kPatience;
  if (!worker_.announcer().pace().finds_waiting(patience, desk_.queue.size_hint())) return;
  worker_.announcer().pace().note_waiting();
  wake_one(shared_);
}

void Loop::run_own_timers(std::int64_t now) noexcept {
  if (desk_.recorder.is_due(now)) [[unlikely]]
    desk_.recorder.begin(now);
  if (desk_.timers.due_hint(now)) (void)clockwork_.run(desk_.timers, now);
}

// Checks the descriptors without waiting for them.
void Loop::poll(std::int64_t now) noexcept {
  if (!shared_.events().watches_anything()) return;
  last_poll_ = now;
  note_events(shared_.events().wait(Deadline::past()));
}

void Loop::note_events(std::size_t woken) noexcept {
  desk_.recorder.counters().polls.add_one();
  if (woken != 0) desk_.recorder.note(detail::TraceKind::poll, woken);
}

bool Loop::serve_stack_waits() noexcept {
  worker_.stack_waits().serve();
  return has_own_work();
}

// Calls `wait`, and counts its duration as time asleep or at rest.
template <class Wait>
auto Loop::while_parked(Wait wait) noexcept {
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

// Waits for a fiber to run, and returns that fiber. Returns nullptr when the scheduler stops.
Fiber* Loop::find_work() noexcept {
  for (;;) {
    if (worker_.takes_look()) {
      look_around();
    } else {
      run_own_timers(machine_now());
    }
    if (Fiber* fiber = worker_.take_handed_over()) return fiber;
    if (is_free_to_leave() && shared_.active().lets_one_leave()) {
      rest();
      if (shared_.stopping()) return nullptr;
    }
    if (Fiber* fiber = take_own_work()) return fiber;
    if (searcher_.take_injected()) continue;
    if (shared_.stack_shortage().anyone_waits() && serve_stack_waits()) [[unlikely]]
      continue;
    // A poll is cheaper than a search, so it comes first. A worker that was woken for work searches
    // at once, without a poll. If a search is not worthwhile, this worker goes to sleep without a
    // poll, because sleeping workers wait for events anyway.
    if (!searching_ && is_search_worthwhile()) {
      poll(machine_now());
      if (desk_.has_work_hint() || !desk_.pinned.empty_hint()) continue;
    }
    Fiber* found = search(*this);
    if (found == nullptr) {
      if (!while_parked([this] { return sleep(*this); })) return nullptr;
      shared_.monitor_rest().work_begins();
    }
    worker_.announcer().pace().resume(machine_now(), desk_.recorder.counters().switches.get());
    desk_.decisions_left.store(worker_.announcer().pace().allotted(), relaxed);
    if (found != nullptr) return found;
  }
}

// Passes all ready fibers to the simulation, which chooses the fiber that runs next.
Fiber* Loop::take_chosen() noexcept {
  detail::Simulation& simulation = *shared_.options().simulation;
  while (Fiber* fiber = desk_.pinned.take()) simulation.ready(*fiber);
  while (Fiber* fiber = desk_.queue.pop()) simulation.ready(*fiber);
  bool ends_turn = false;
  Fiber* fiber = simulation.take(ends_turn);
  desk_.turn.has_ended.store(ends_turn, relaxed);
  desk_.turn.over.store(ends_turn || base::notes_lock_owners(), relaxed);
  return fiber;
}

// Alternately takes a pinned fiber and a fiber from the queue.
Fiber* Loop::take_own_work() noexcept {
  if (shared_.options().simulation != nullptr) [[unlikely]]
    return take_chosen();
  Fiber* fiber = desk_.pinned.take_or([this] { return desk_.queue.pop(); });
  if (!desk_.pinned.empty_hint()) desk_.ask_to_look();
  return fiber;
}

// Returns the time until which this worker may sleep if no event or unpark wakes it.
Deadline Loop::sleep_limit() noexcept {
  Deadline limit = Deadline::never();
  DeadlockWatch& watch = shared_.deadlock_watch();
  if (watch.try_take(desk_.index)) watch_pauses_.restart();
  if (watch.is_on_watch(desk_.index)) {
    limit = std::min(limit, watch_pauses_.next());
  }
  const std::int64_t now = machine_now();
  if (shared_.stores().has_surplus_hint()) {
    limit = std::min(limit, Deadline::at_nanoseconds(now + tuning::kTrimDelay));
  }
  if (must_look_itself())
    limit = std::min(limit, Deadline::at_nanoseconds(now + tuning::kUnmonitored));
  return worker_.stack_waits().prepare_for_sleep(limit, now);
}

// Without a monitor, no thread wakes this worker when another awake worker does not run its queued
// fibers.
bool Loop::must_look_itself() const noexcept {
  const unsigned itself = shared_.is_asleep(desk_) ? 0 : 1;
  return !shared_.options().monitor.enabled && shared_.awake_hint() > itself;
}

// Sleeps in the event source, or on the worker's futex.
bool Loop::wait_for_events(Deadline deadline, bool in_source) noexcept {
  if (!in_source) return desk_.park_until(deadline);
  std::size_t found = 0;
  const bool unparked = desk_.wait_in_source(deadline, [this, &found](std::size_t woken) {
    note_events(woken);
    found = woken;
  });
  return unparked || found > 0;
}

bool Loop::has_own_work() const noexcept {
  return desk_.has_work_hint() || !desk_.pinned.empty_hint() ||
         (is_free_to_leave() && shared_.active().wants_one_to_leave());
}

void Loop::begin_idling() noexcept {
  const std::int64_t now = desk_.recorder.asleep_since();
  const Pace::Progress progress =
      worker_.announcer().pace().look(now, desk_.recorder.counters().switches.get());
  if (run_lengths_.are_long(progress)) worker_.announcer().pace().note_long_run(now);
  shared_.deadlock_watch().take_over(desk_.index);
  watch_pauses_.restart();
}

// Must be called after a full fence.
void Loop::note_sleep() noexcept {
  desk_.recorder.counters().sleeps.add_one();
  shared_.quiescence().worker_sleeps();
}

// Called when a sleep has timed out. Serves fibers that wait for stacks, frees memory, and searches
// for deadlocks. Returns true if it may have created work.
bool Loop::do_chores() noexcept {
  if (shared_.stack_shortage().anyone_waits() && serve_stack_waits()) return true;
  if (must_look_itself()) return shared_.has_work_hint();
  give_memory_back();
  return report_deadlock();
}

// Makes this worker inactive, and moves its fibers to the inject queue. Returns when the monitor
// needs the worker again, when a pinned fiber arrives, or when the scheduler stops.
void Loop::rest() noexcept {
  for (Chain chain = desk_.queue.take_all(); Fiber* fiber = chain.take_first();) {
    shared_.inject_queue().push(*fiber);
  }
  worker_.empty_caches();
  const bool was_on_watch = shared_.deadlock_watch().pass_on(desk_.index);
  leave(*this);
  // If pass_on() returned true, no worker is on watch for deadlocks. As leave() does not always
  // unpark a worker, this function unparks worker 0. It is always active, and takes over that watch
  // before it sleeps.
  if (was_on_watch) shared_.desk(0).unpark();
  desk_.begin_rest();
  while_parked([this] {
    while (desk_.is_resting() && !shared_.stopping()) {
      // After each push, send_pinned() unparks this worker, so no pinned fiber is overlooked.
      if (!desk_.pinned.empty_hint() && desk_.end_rest()) {
        (void)shared_.active().add_one();
        detail::full_fence();  // [asleep]
        shared_.monitor_rest().work_begins();
        return;
      }
      (void)desk_.park_until(Deadline::never());
    }
  });
}

// Frees unused memory in small steps, until there is work. Checks for work before each step,
// because other threads do not notify a worker that is awake.
void Loop::give_memory_back() noexcept {
  while (!shared_.has_work_hint() && !shared_.stopping() && !desk_.timers.due_hint(machine_now())) {
    if (!shared_.stores().trim_some()) return;
  }
}

// If this worker is on watch for deadlocks and a search is due, checks whether any fiber can run.
// Returns true after a report, so that the caller searches for work: the handler may have made a
// fiber runnable.
[[gnu::cold]] bool Loop::report_deadlock() noexcept {
  DeadlockWatch& watch = shared_.deadlock_watch();
  const auto& report = shared_.options().on_deadlock;
  if (!watch_pauses_.next().passed() || !watch.is_on_watch(desk_.index)) return false;
  // No deadlock is possible without fibers. The first worker that goes to sleep after the next
  // spawn restarts the search.
  if (!report || shared_.live() == 0) {
    watch_pauses_.stop();
    return false;
  }
  const DeadlockWatch::Finding found = watch.find(desk_.index);
  if (found == DeadlockWatch::Finding::waiting) {
    watch_pauses_.stop();  // A worker that goes to sleep schedules the next search for deadlocks.
    return false;
  }
  watch_pauses_.lengthen();
  if (const Deadline timer = clockwork_.earliest(Deadline::never()); !timer.is_never()) {
    watch_pauses_.put_off(timer);
  }
  if (found != DeadlockWatch::Finding::deadlock) return false;
  const ExitWatch::Pause pause;
  report(shared_.scheduler());
  return true;
}

}  // namespace weft::scheduler

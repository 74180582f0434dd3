// The steps by which workers go to sleep, search and are woken; scheduler/README.md has the rules
// and the proof.
//
// The functions are templates, so that tests/model explores exactly this code. The model's Worker
// has no stacks, fibers or descriptors, but performs the same sequence of steps. Each relaxed load
// here follows a full fence, or loads a hint that does no harm if it is stale.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <weft/deadline.hpp>
#include <weft/detail/atomic.hpp>

#include "scheduler/sleep/idle_set.hpp"
#include "scheduler/sleep/watch.hpp"

namespace weft::scheduler {

// --- By any thread ---

// Wakes a sleeping worker for newly visible work, unless a worker is already searching.
template <class Shared>
void wake_one(Shared& shared) noexcept {
  const int chosen = shared.idle().work_added(shared.watch().holder());
  if (chosen != IdleSet::kNobody) shared.desk(static_cast<unsigned>(chosen)).unpark_for_work();
}

// Must be called after a push to the inject queue.
template <class Shared>
void announce_from_outside(Shared& shared) noexcept {
  detail::full_fence();  // [idle]
  wake_one(shared);
}

// If any worker is asleep, ensures that a sleeping worker holds the watch, sleeps at most until
// `moment`, and sees the events of the event source. Awake workers and the monitor call it
// regularly, without a fence. In any other case, a full fence must precede the call.
template <class Shared>
void mind_watch(Shared& shared, std::int64_t moment) noexcept {
  const Watch& watch = shared.watch();
  const int holder = watch.holder();
  if (holder != Watch::kNobody) {
    const bool misses_events = !watch.sees_events() && shared.watches_events();
    if (moment < watch.limit() || misses_events) {
      shared.desk(static_cast<unsigned>(holder)).unpark();
    }
    return;
  }
  const int sleeper = shared.idle().any_asleep();
  if (sleeper == IdleSet::kNobody || !shared.has_events_to_watch()) return;
  shared.desk(static_cast<unsigned>(sleeper)).unpark();
}

// Must be called by a plain thread that has added a descriptor to the event source.
template <class Shared>
void announce_event(Shared& shared) noexcept {
  detail::full_fence();  // [watch]
  mind_watch(shared, Deadline::never().nanoseconds());
}

// --- A worker that looks for work calls these ---

// Called by a worker when its search ends, before it runs a fiber or becomes inactive.
template <class Worker>
void end_search(Worker& worker) noexcept {
  if (!std::exchange(worker.searching(), false)) return;
  auto& shared = worker.shared();
  if (!shared.idle().end_search()) return;  // F1
  // Threads that added work during the search relied on the searchers and woke no worker. The last
  // searcher therefore checks for their work.
  detail::full_fence();                                  // F2 [idle]
  if (shared.has_outside_work_hint()) wake_one(shared);  // F3
}

// Called by a worker that has moved its queued fibers to the inject queue and is about to become
// inactive. Another worker then searches instead. Before that worker sleeps, it takes the watch if
// no other worker has it. If the leaving worker has a timer that is due before the holder of the
// watch wakes up, leave() wakes the holder.
template <class Worker>
void leave(Worker& worker) noexcept {
  end_search(worker);
  announce_from_outside(worker.shared());  // [watch]
  mind_watch(worker.shared(), worker.next_timer_hint().nanoseconds());
}

// Searches the other workers for work. Returns a fiber, or null if the worker should sleep.
template <class Worker>
[[nodiscard]] auto search(Worker& worker) noexcept -> decltype(worker.search_for_a_while()) {
  if (!worker.searching()) {
    if (!worker.is_search_worthwhile() || !worker.shared().idle().try_begin_search()) return {};
    worker.searching() = true;
  }
  return worker.search_for_a_while();
}

// --- A worker that has found nothing calls these ---

// Waits, and holds the watch during the wait if no other worker holds it. Returns true if the
// worker has been unparked, or has made fibers runnable. `limit` bounds the wait.
template <class Worker>
[[nodiscard]] bool doze(Worker& worker, Deadline limit) noexcept {
  auto& shared = worker.shared();
  Watch& watch = shared.watch();
  if (!watch.try_begin(worker.index())) {  // D1
    mind_watch(shared, worker.next_timer_hint().nanoseconds());
    return worker.park_until(limit);
  }
  // The worker sleeps no longer than the published limit, even if a timer is cancelled or the last
  // descriptor is closed before D4. Other workers rely on that limit, and do not wake this worker
  // for a later timer or a new descriptor.
  const Deadline told = worker.earliest_event(limit);
  const bool sees_events = shared.watches_events();
  watch.set_limit(told.nanoseconds(), sees_events);                     // D2
  detail::full_fence();                                                 // D3 [watch]
  const Deadline rises = std::min(told, worker.earliest_event(limit));  // D4
  const bool waits_in_source = sees_events || shared.watches_events();
  // Correctness does not require this call. It only avoids a needless wake for an event that the
  // holder has just seen.
  watch.set_limit(rises.nanoseconds(), waits_in_source);
  const bool awake = worker.wait_for_events(rises, waits_in_source);
  watch.end();
  return awake;
}

// Sleeps until there may be work. Returns false when the scheduler stops.
template <class Worker>
[[nodiscard]] bool sleep(Worker& worker) noexcept {
  auto& shared = worker.shared();
  IdleSet& idle = shared.idle();
  worker.begin_idling();
  for (;;) {
    if (shared.stopping()) return false;
    idle.begin_sleep(worker.index());                                       // S1
    if (std::exchange(worker.searching(), false)) (void)idle.end_search();  // S2
    detail::full_fence();                                                   // S3 [idle] [watch]
    worker.note_sleep();
    bool timed_out = false;
    // The worker first checks its own queue. During its search, it may have fired timers of its
    // pinned fibers, for which no other thread would unpark it.
    while (!timed_out && !worker.has_own_work() && !shared.has_outside_work_hint() &&
           !shared.stopping()) {                        // S4
      timed_out = !doze(worker, worker.sleep_limit());  // S5
      if (worker.has_due_events() || !idle.is_asleep(worker.index())) break;
    }
    if (!idle.try_end_sleep(worker.index())) {
      // A waker has chosen this worker, and has unparked it or will unpark it. An unpark that comes
      // later does no harm: it only ends the next sleep early.
      worker.searching() = true;
      return true;
    }
    if (shared.has_outside_work_hint()) {  // S6
      // While this worker counted as searching, threads that added work may have woken no worker.
      // This worker therefore continues the search, and checks for more work at the end. If enough
      // others are searching, one of them will check for more work.
      worker.searching() = idle.try_begin_search();
      return true;
    }
    if (worker.has_own_work() || worker.run_events_of_all()) return true;
    if (timed_out && worker.do_chores()) return true;
  }
}

}  // namespace weft::scheduler

// How workers go to sleep, search and are woken; README.md here has the proof.
//
// Templates, so that tests/model explores these very lines: a Worker there has no stacks, fibers
// or descriptors, but the same sequence of steps. Relaxed loads here follow a full fence, or are
// hints that a stale answer does not harm.
#pragma once

#include <cstdint>
#include <utility>
#include <weft/deadline.hpp>
#include <weft/detail/atomic.hpp>

#include "scheduler/idle_set.hpp"
#include "scheduler/watch.hpp"

namespace weft::scheduler {

// --- By a thread that adds work, a timer or a descriptor ---

// Wakes a sleeper for work that has been made visible, unless somebody searches already.
template <class Shared>
void wake_one(Shared& shared) noexcept {
  const int chosen = shared.idle().work_added(shared.watch().holder());
  if (chosen != IdleSet::kNobody) shared.worker(static_cast<unsigned>(chosen)).unpark_for_work();
}

// After a push to the inject queue, by any thread.
template <class Shared>
void announce_from_outside(Shared& shared) noexcept {
  detail::full_fence();  // [idle]
  wake_one(shared);
  // The searcher that naps would find it too, but only when its nap is over.
  if (auto* napping = shared.napper().load(detail::acquire)) napping->unpark();  // [idle]
}

// After a timer for `moment` has become the earliest of its worker, or the event source has begun
// to watch something (then `moment` is 0): if any worker sleeps, the one that holds the watch looks
// again, unless it will in time; if none holds it, one of the sleepers gets up and takes it.
template <class Shared>
void announce_event(Shared& shared, std::int64_t moment) noexcept {
  detail::full_fence();  // [watch]
  const int holder = shared.watch().holder();
  if (holder != Watch::kNobody) {
    if (moment < shared.watch().limit()) shared.worker(static_cast<unsigned>(holder)).unpark();
    return;
  }
  const int sleeper = shared.idle().any_asleep();
  if (sleeper != IdleSet::kNobody) shared.worker(static_cast<unsigned>(sleeper)).unpark();
}

// --- By a worker that searches ---

// After the search, before a fiber is run or the worker is lost to the others.
template <class Worker>
void end_search(Worker& worker) noexcept {
  if (!std::exchange(worker.searching(), false)) return;
  auto& shared = worker.shared();
  if (!shared.idle().end_search()) return;  // F1
  // Work that was added while we searched woke nobody: the last searcher looks for it.
  detail::full_fence();                          // F2 [idle]
  if (shared.has_work_hint()) wake_one(shared);  // F3
}

// When a worker that held the watch, or was asked to take it, has something better to do.
template <class Worker>
void pass_on_watch(Worker& worker) noexcept {
  auto& shared = worker.shared();
  detail::full_fence();  // [watch]
  if (shared.watch().holder() != Watch::kNobody) return;
  const int sleeper = shared.idle().any_asleep();
  if (sleeper == IdleSet::kNobody || !shared.has_events_to_watch()) return;
  shared.worker(static_cast<unsigned>(sleeper)).unpark();
}

// Waits, as the holder of the watch if nobody else is. True when the worker has been unparked, or
// has made fibers runnable. `limit` bounds the wait.
template <class Worker>
[[nodiscard]] bool doze(Worker& worker, Deadline limit) noexcept {
  Watch& watch = worker.shared().watch();
  if (!watch.try_begin(worker.index())) return worker.park_until(limit);
  watch.set_limit(worker.earliest_event(limit).nanoseconds());
  detail::full_fence();  // [watch]
  const bool awake = worker.wait_for_events(worker.earliest_event(limit));
  watch.end();
  return awake;
}

// Looks for work at the other workers. Returns what it found, or null when the worker should sleep.
template <class Worker>
[[nodiscard]] auto search(Worker& worker) noexcept -> decltype(worker.search_for_a_while()) {
  auto& shared = worker.shared();
  if (!shared.has_several_workers()) return {};
  if (!worker.searching()) {
    if (!shared.idle().try_begin_search()) return {};
    worker.searching() = true;
  }
  for (unsigned naps = 0;; ++naps) {
    if (auto found = worker.search_for_a_while()) return found;
    if (shared.stopping() || !worker.others_make_progress()) return {};
    // Others have work, but are done with it sooner than we could take it over. We nap and keep
    // our right to search, so that they need not wake anybody with every fiber they add.
    Worker* nobody = nullptr;
    if (!shared.napper().compare_exchange_strong(nobody, &worker, detail::seq_cst,
                                                 detail::relaxed)) {  // [idle]
      return {};                                                      // One napper is enough.
    }
    detail::full_fence();  // [idle]
    if (!shared.has_outside_work_hint()) (void)doze(worker, worker.nap_limit(naps));
    shared.napper().store(nullptr, detail::relaxed);
    pass_on_watch(worker);
    if (auto found = worker.take_own_work()) return found;  // The event source has brought some.
  }
}

// --- By a worker that has found nothing ---

// Sleeps until there may be work. False when the scheduler stops.
template <class Worker>
[[nodiscard]] bool sleep(Worker& worker) noexcept {
  auto& shared = worker.shared();
  IdleSet& idle = shared.idle();
  worker.begin_idling();
  for (;;) {
    if (shared.stopping()) return false;
    idle.begin_sleep(worker.index());                                       // S1
    if (std::exchange(worker.searching(), false)) (void)idle.end_search();  // S2
    detail::full_fence();                                                   // S3 [idle]
    worker.note_sleep();
    bool work = false;
    bool timed_out = false;
    // The bit stays set over the short first wait and the look after it: so whoever adds work, from
    // then on, sees the sleeper even without a fence.
    for (bool first = true; !timed_out; first = false) {
      // A searcher, if there is one, looks at the other workers' queues after this; so they are its
      // affair, and a worker that may not search need not wait for them to be empty.
      work = shared.has_outside_work_hint() ||
             (!idle.someone_searches_hint() && shared.has_work_hint());  // S4
      if (work || shared.stopping()) break;
      const bool awake = doze(worker, worker.sleep_limit(first));  // S6
      if (worker.has_own_work() || worker.has_due_events() || !idle.is_asleep(worker.index()))
        break;
      timed_out = !awake && !first;
    }
    if (!idle.try_end_sleep(worker.index())) {
      // Chosen by a waker, whose unpark is here or on its way; one that has come for another
      // reason may have been taken for it, and then only ends the next sleep early.
      worker.searching() = true;
      pass_on_watch(worker);
      return true;
    }
    if (work) {  // S5
      // Others may have added more while this worker counted as searching, and woken nobody: it
      // takes the search up again, and the end of it includes the look for more. If it may not,
      // somebody else searches and will look.
      worker.searching() = idle.try_begin_search();
    }
    if (work || worker.has_own_work() || worker.run_events_of_all()) {
      pass_on_watch(worker);
      return true;
    }
    if (timed_out && worker.do_chores()) return true;
  }
}

}  // namespace weft::scheduler

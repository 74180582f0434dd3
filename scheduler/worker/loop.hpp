// The loop in which a worker's thread finds and enters fibers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "scheduler/upkeep/deadlock.hpp"
#include "scheduler/worker/clockwork.hpp"
#include "scheduler/worker/run_lengths.hpp"
#include "scheduler/worker/searcher.hpp"
#include "scheduler/worker/worker.hpp"

namespace weft::scheduler {

// The loop of a worker's thread runs on the thread's own stack. It finds the next fiber and enters
// it. The worker returns to the loop when its queue is empty, or when its next check for other work
// (a look) is due. The loop takes fibers from the worker's own queues, then from the inject queue,
// and then from other workers. If it finds none, the worker sleeps. Owner: the worker's thread.
// Relaxed: the accessed values are counts and flags, which publish no other data.
class Loop {
 public:
  Loop(Shared& shared, unsigned index);
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // The main function of the thread. Returns when the scheduler stops.
  void run() noexcept;
  [[nodiscard]] Desk& desk() noexcept { return desk_; }

  // The functions of sleep_protocol.hpp call the following members.
  [[nodiscard]] Shared& shared() noexcept { return shared_; }
  [[nodiscard]] unsigned index() const noexcept { return desk_.index; }
  [[nodiscard]] bool& searching() noexcept { return searching_; }
  [[nodiscard]] fibers::Fiber* search_for_a_while() noexcept {
    return searcher_.search_for_a_while();
  }
  [[nodiscard]] bool is_search_worthwhile() const noexcept {
    return scheduler::is_search_worthwhile(shared_);
  }
  [[nodiscard]] fibers::Fiber* take_own_work() noexcept;
  void begin_idling() noexcept;
  void note_sleep() noexcept;
  [[nodiscard]] Deadline sleep_limit() noexcept;
  [[nodiscard]] Deadline earliest_event(Deadline limit) const noexcept {
    return clockwork_.earliest(limit);
  }
  [[nodiscard]] bool has_own_work() const noexcept;
  [[nodiscard]] bool has_due_events() const noexcept { return clockwork_.has_due(); }
  [[nodiscard]] bool run_events_of_all() noexcept { return clockwork_.run_all(); }
  [[nodiscard]] bool do_chores() noexcept;
  [[nodiscard]] Deadline next_timer_hint() const noexcept { return desk_.next_timer_hint(); }
  [[nodiscard]] bool park_until(Deadline deadline) noexcept { return desk_.park_until(deadline); }
  [[nodiscard]] bool wait_for_events(Deadline deadline, bool in_source) noexcept;

 private:
  template <class Wait>
  auto while_parked(Wait wait) noexcept;

  [[nodiscard]] fibers::Fiber* find_work() noexcept;
  // Returns whether the worker may leave: it is not permanent, and no pinned fiber needs it.
  [[nodiscard]] bool is_free_to_leave() const noexcept;
  void prepare_for_run() noexcept;
  [[nodiscard]] fibers::Fiber* take_chosen() noexcept;
  void look_around() noexcept;
  void look_at_pace(std::int64_t now) noexcept;
  void run_own_timers(std::int64_t now) noexcept;
  void poll(std::int64_t now) noexcept;
  void note_events(std::size_t woken) noexcept;
  // Returns true if, after the call, this worker has fibers to run or should become inactive.
  [[nodiscard]] bool serve_stack_waits() noexcept;
  void give_memory_back() noexcept;
  [[nodiscard]] bool must_look_itself() const noexcept;
  [[nodiscard]] bool report_deadlock() noexcept;
  void rest() noexcept;

  Worker worker_;
  Desk& desk_;  // The worker's desk.
  Shared& shared_;
  Clockwork clockwork_;
  Searcher searcher_;
  bool searching_ = false;
  RunLengths run_lengths_;
  std::int64_t last_poll_ = 0;
  std::int64_t last_reach_ = 0;  // When reach_oldest() was last called.
  WatchPauses watch_pauses_;
};

}  // namespace weft::scheduler

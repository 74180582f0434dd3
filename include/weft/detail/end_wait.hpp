// The wait of a destructor, which is reported if it lasts.
#pragma once

#include <weft/deadline.hpp>

namespace weft::detail {

// Returns when to report a wait that begins now: after 5 s, or never() in a simulation, because
// simulated time must not depend on reports.
[[nodiscard]] Deadline end_wait_report_time() noexcept;

// Writes on stderr that `what` still waits, and lists the fibers of `target` (see
// Task::join_target), or all fibers if it is null. Blocks the thread for some milliseconds.
void report_end_wait(const char* what, const void* target) noexcept;

// Calls wait_until(Deadline), which returns false at the deadline, until it returns true. An
// exception of the call is passed on. Until the report, the search for deadlocks treats the wait as
// a wait with a deadline.
template <class WaitUntil>
void wait_at_end(const char* what, const void* target, WaitUntil wait_until) {
  if (wait_until(end_wait_report_time())) return;
  report_end_wait(what, target);
  while (!wait_until(Deadline::never())) {
  }
}

}  // namespace weft::detail

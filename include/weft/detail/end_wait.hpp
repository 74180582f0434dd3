// The wait of a destructor, which is reported if it lasts.
#pragma once

#include <weft/deadline.hpp>

namespace weft::detail {

// When a wait that begins now is to be reported: after 5 s. Never in a simulation, whose time must
// not depend on reports.
[[nodiscard]] Deadline end_wait_report_time() noexcept;

// Writes on stderr that `what` still waits, and lists the fibers of `target` (see
// Task::join_target), or all fibers if it is null. Blocks the thread for some milliseconds.
void report_end_wait(const char* what, const void* target) noexcept;

// Waits by wait_until(Deadline), which returns false at the deadline, until that returns true. What
// the call throws is thrown. Until the report, the search for deadlocks takes the wait for one that
// the clock ends.
template <class WaitUntil>
void wait_at_end(const char* what, const void* target, WaitUntil wait_until) {
  if (wait_until(end_wait_report_time())) return;
  report_end_wait(what, target);
  while (!wait_until(Deadline::never())) {
  }
}

}  // namespace weft::detail

// Reports destructors that wait too long.
#pragma once

#include <weft/deadline.hpp>

namespace weft::detail {

// Returns the time at which a wait that begins now must be reported: 5 s from now. In a simulation,
// returns never(), because simulated time must not depend on reports.
[[nodiscard]] Deadline end_wait_report_time() noexcept;

// Writes to stderr that `what` is still waiting. Lists the fibers whose Task::join_target() is
// `target`, or all fibers if there is no such fiber. Omits the report after many recent reports.
void report_end_wait(const char* what, const void* target) noexcept;

// Calls `wait_until` with a Deadline until it returns true. `wait_until` must return false at the
// deadline. Its exceptions propagate. Until the report, deadlock detection treats the wait as one
// with a deadline.
template <class WaitUntil>
void wait_at_end(const char* what, const void* target, WaitUntil wait_until) {
  if (wait_until(end_wait_report_time())) return;
  report_end_wait(what, target);
  while (!wait_until(Deadline::never())) {
  }
}

}  // namespace weft::detail

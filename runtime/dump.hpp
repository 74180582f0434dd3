// The doings of all fibers, in words.
#pragma once

#include <string>
#include <string_view>
#include <weft/deadline.hpp>

#include "scheduler/scheduler.hpp"

namespace weft::runtime {

// How long a report of something that went wrong waits for a lock that may never be free again.
[[nodiscard]] Deadline report_patience() noexcept;

// A heading and one line per living fiber, the first few hundred. Fibers that run meanwhile may be
// shown stale. When the records' lock was not to be had before `patience` ended, a line says so
// instead. May be called on a fiber's stack, however small. Blocks the thread.
[[nodiscard]] std::string dump(scheduler::Scheduler& scheduler, Deadline patience);
// Does the same as dump(), with the calls that each parked fiber is in, and a heading of its own.
// Only when no fiber can run meanwhile.
[[nodiscard]] std::string describe_deadlock(scheduler::Scheduler& scheduler);
// The same without that heading.
[[nodiscard]] std::string describe_calls(scheduler::Scheduler& scheduler);
// A line about a worker that is stuck, and the fiber that it is stuck in; then one for each of the
// calls that it is in.
[[nodiscard]] std::string describe_stall(const scheduler::Stall& stall,
                                         const fibers::Backtrace& calls);
// Dumps all runtimes.
[[nodiscard]] std::string dump_all(Deadline patience);

// The fibers, of all runtimes, whose end ends a wait for `target`, and perhaps a few more; all
// fibers if that is null, or if no such fiber lives.
[[nodiscard]] std::string dump_targeted(const void* target, Deadline patience);

void write_to_stderr(std::string_view text) noexcept;
// dump_all(), or a line that says why it cannot be made. Not on a fiber's stack.
void write_all_to_stderr() noexcept;

// From now on a failed WEFT_CHECK shows all fibers before it ends the process.
void install_panic_dump() noexcept;

}  // namespace weft::runtime

// Describes the state of all fibers in words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <weft/deadline.hpp>

#include "scheduler/scheduler.hpp"
#include "scheduler/upkeep/wait_cycles.hpp"

namespace weft::runtime {

// A request that a server handles in a fiber.
struct RequestText {
  std::string text;        // `GET /users/7 from 10.0.0.1:4711, reading body, 40 ms`.
  std::int64_t began = 0;  // A time of Deadline's clock.
};
// Returns requests by the numbers of their fibers: the longest 256 of each server, slightly
// delayed. Returns none if a lock was not free before `patience` ended. Throws std::bad_alloc.
[[nodiscard]] std::unordered_map<std::uint64_t, RequestText> describe_requests(Deadline patience);

// Returns how long a report of a fault waits for a lock that may stay held.
[[nodiscard]] Deadline report_patience() noexcept;

// Returns a heading and one line for each of the first few hundred living fibers. Lines of running
// fibers may be stale. If `patience` ended before the records' lock was free, a line reports that
// instead. Any fiber may call it, however small its stack. It blocks the thread.
[[nodiscard]] std::string dump(scheduler::Scheduler& scheduler, Deadline patience);
// Does the same as dump(), with the calls of each parked or ready fiber, and its own heading. Call
// it only when no fiber can run during the call.
[[nodiscard]] std::string describe_deadlock(scheduler::Scheduler& scheduler);
// Returns the same text without that heading.
[[nodiscard]] std::string describe_calls(scheduler::Scheduler& scheduler);
// Returns one fiber's line of a dump.
[[nodiscard]] std::string describe_fiber(const fibers::Fiber& fiber);
// Returns the lines of the fibers that run, with their calls. Plain threads may call it.
[[nodiscard]] std::string describe_running(scheduler::Scheduler& scheduler);
// Returns a line about a stuck worker and its fiber, and then a line for each of that fiber's
// calls.
[[nodiscard]] std::string describe_stall(const scheduler::Stall& stall,
                                         const fibers::Backtrace& calls);
// Returns a heading, and for each fiber of the cycle its line and its calls.
[[nodiscard]] std::string describe_cycle(const scheduler::WaitCycle& cycle);
// Returns the cycles of all runtimes, or a line that reports that there is no cycle. Throws
// std::bad_alloc.
[[nodiscard]] std::string describe_cycles();
// Dumps all runtimes.
[[nodiscard]] std::string dump_all(Deadline patience);

// Returns the fibers of all runtimes whose end ends a wait for `target`, and perhaps a few more.
// Returns all fibers if `target` is null or no such fiber lives.
[[nodiscard]] std::string dump_targeted(const void* target, Deadline patience);

// Writes the whole text; returns the error if that failed.
std::error_code write_all(int descriptor, std::string_view text) noexcept;
void write_to_stderr(std::string_view text) noexcept;
// Writes dump_all(), or a line that states why it cannot be made. Do not call it on a fiber's
// stack.
void write_all_to_stderr() noexcept;

// Makes a failed WEFT_CHECK list all fibers before it ends the process.
void install_panic_dump() noexcept;

}  // namespace weft::runtime

// Records the actions of fibers and workers over time, for trace viewers.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <weft/result.hpp>

// A trace contains the spawns, runs, waits and wakes of fibers; the steals, sleeps and polls of
// workers; and the tasks of pools. Each worker writes to its own ring, which keeps the newest
// events. docs/watching.md shows a trace and the costs of tracing.
//
//   weft::trace::start();
//   ...
//   weft::trace::stop();
//   weft::trace::write_file("trace.json");  // For ui.perfetto.dev, or chrome://tracing.
//
// Context: fibers and plain threads; calls do not park.
namespace weft::trace {

struct Options {
  // The number of events kept per worker, rounded up to a power of two of at least 64. An event
  // uses 48 bytes; a park and its wake take three events. Events of ended runtimes are kept, so a
  // program that makes many runtimes needs memory for all their workers.
  std::size_t events_per_worker = std::size_t{1} << 16;
};

// Drops old records and begins to record. The calling worker starts recording at once. Each other
// worker starts within about 2 ms, or later if it is running a fiber that does not switch. A worker
// that cannot allocate memory for its events records nothing, and tries again later.
// Throws: std::bad_alloc.
void start(const Options& options = {});
// Ends recording; other workers need as long as for start(). Keeps records, even of ended runtimes.
void stop() noexcept;
// Returns whether a trace is being recorded.
[[nodiscard]] bool is_on() noexcept;

// Writes JSON in Chrome's trace event format: a track per worker and one for plain threads, a slice
// per run of a fiber, an arrow from each wake to the next run. If events were overwritten, all
// arrows begin after the last of these events. May be called during a recording.
// Context: fibers and plain threads; blocks the calling thread for about a microsecond per event.
// Throws: std::bad_alloc, what the stream throws, and std::system_error if the system cannot create
// the thread that writes for a fiber.
void write(std::ostream& out);
// Replaces a file with the output of write(). Returns an error if the file cannot be opened or
// written; part of the output may have been written by then.
// Context, Throws: the same as for write().
[[nodiscard]] Result<void> write_file(const std::string& path);

}  // namespace weft::trace

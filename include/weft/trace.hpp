// The actions of fibers and workers over time, for trace viewers.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <weft/result.hpp>

// A trace of the process: fibers that are spawned, run, wait and are woken; workers that steal,
// sleep and poll descriptors; tasks of named pools. Each worker writes to its own ring, which keeps
// the newest events. docs/watching.md shows a trace and its costs.
//
//   weft::trace::start();
//   ...
//   weft::trace::stop();
//   weft::trace::write_file("trace.json");  // For ui.perfetto.dev, or chrome://tracing.
//
// Context: fibers and plain threads; calls do not park.
namespace weft::trace {

struct Options {
  // Events kept per worker, rounded up to a power of two, of 48 bytes each. A park and its wake
  // make three events. Events of ended runtimes are kept: a program that makes many runtimes needs
  // memory for all their workers.
  std::size_t events_per_worker = std::size_t{1} << 16;
};

// Drops old records and begins to record. The calling worker begins at once. Other workers begin
// within a millisecond or two, unless a fiber computes there. A worker without memory for its ring
// records nothing.
// Throws: std::bad_alloc.
void start(const Options& options = {});
// Ends recording. Records are kept for write(), even after their runtime ends.
void stop() noexcept;
// Returns whether it records.
[[nodiscard]] bool is_on() noexcept;

// Writes the JSON of Chrome's trace events: a track per worker, a slice per run of a fiber, an
// arrow from each wake to the next run. If events were overwritten, arrows begin at the first
// moment from which the events of all workers are left. It may be called while recording.
// Context: fibers and plain threads; blocks the thread, for about a microsecond per event.
// Throws: std::bad_alloc, what the stream throws, and std::system_error if the system refuses a
// thread for a fiber's call.
void write(std::ostream& out);
// Replaces a file by write()'s output. Returns the error of opening or writing the file; a part of
// it may have been written.
// Context, Throws: as write().
[[nodiscard]] Result<void> write_file(const std::string& path);

}  // namespace weft::trace

// The doings of fibers and workers, one after the other, for viewers of traces.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <system_error>

// A trace of the process: fibers that are spawned, run, wait and are woken, by whom; workers that
// steal, sleep and look at descriptors; tasks of pools that have a name. Each worker writes into a
// ring of its own, which keeps the newest events. docs/watching.md shows one, and what it costs.
//
//   weft::trace::start();
//   ...
//   weft::trace::stop();
//   weft::trace::write_file("trace.json");  // For ui.perfetto.dev, or chrome://tracing.
//
// The calls synchronize with nothing.
namespace weft::trace {

struct Options {
  // How many events are kept of each worker, rounded up to a power of two. One takes 48 bytes; a
  // fiber that parks and is woken makes three. Events of runtimes that have ended are kept, too: a
  // program that makes many while it records needs memory for the workers of all.
  std::size_t events_per_worker = std::size_t{1} << 16;
};

// Forgets what there is and begins to record: the calling worker at once, each other one when it
// looks around next, within a millisecond or two unless a fiber computes there. From fibers and
// plain threads; never parks. Throws std::bad_alloc. A worker that finds no memory for its ring
// records nothing.
void start(const Options& options = {});
// Records are kept for write(), even when its runtime has ended. From anywhere; never parks.
void stop() noexcept;
// Returns whether it records. From anywhere; never parks.
[[nodiscard]] bool is_on() noexcept;

// Writes JSON, in the format of Chrome's trace events: a track for each worker, a slice for each
// run of a fiber, an arrow from each wake to the run that follows. Where events have been
// overwritten, what takes more than one to tell, as arrows do, begins with the oldest event of the
// worker whose events go back least. May be called while it records.
// Call it from fibers and plain threads; it blocks the thread for a while, about a microsecond for
// each event. Throws std::bad_alloc, std::system_error when the system refuses a fiber's call a
// thread, and what the stream throws.
void write(std::ostream& out);
// Writes a file, in place of one that is there, as write() does. From fibers and plain threads;
// blocks the thread, for the writes of the file, too. Throws as write(). Errors: what kept the file
// from being opened or written; a part of it may be there then.
[[nodiscard]] std::error_code write_file(const std::string& path);

}  // namespace weft::trace

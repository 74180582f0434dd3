// Writes lists of fibers in formats for tools; dump_fibers() of runtime.hpp writes text for people.
// Context: fibers and plain threads; each call blocks the thread.
#pragma once

#include <iosfwd>

namespace weft::dump {

// Writes a JSON object that lists each living fiber: its state and runtime, and if known its wait
// reason, HTTP request, callable and spawn site. A started fiber also has an id and a name. An
// entry shows how long the fiber has been in this state, if that is known to within ten seconds.
// The list is complete, but not a snapshot: it may show an earlier state of a running fiber. The
// call takes about a microsecond per fiber, and holds a lock that creating a fiber may need.
// Throws: std::bad_alloc, std::system_error, and what the stream throws.
void write_json(std::ostream& out);

// Writes the call stacks of parked fibers in the format of flamegraph.pl and speedscope. Each line
// contains a stack and the number of fibers that have it. A stack lists at most 24 calls, outermost
// first and separated by `;`, and ends with the reason for the wait. A function that the program
// does not export appears as `module+0xoffset`, which tools/symbolize replaces with the name. For
// each runtime, the call forks a child, whose memory is the snapshot. A fork takes about 1 ms for
// each 100 MB of used memory. In a build with a sanitizer, a stack contains only the wait reason.
// Throws: whatever write_json() throws, and std::system_error if the fork fails.
void write_folded(std::ostream& out);

// Writes each cycle of fibers that wait for each other, formatted as for
// RuntimeOptions::on_partial_deadlock. If cycles share a fiber, writes only one of them. If there
// is no cycle, a line says so. If mutexes do not record their owners, a line says so. The call
// takes a few microseconds per fiber that waits for fibers or a mutex, and holds a lock that spawns
// may need. It finds no cycle if the system forbids process_vm_readv, which reads the stacks.
// Throws: whatever write_json() throws.
void write_deadlocks(std::ostream& out);

}  // namespace weft::dump

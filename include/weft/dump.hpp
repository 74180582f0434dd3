// Lists all fibers of a process in forms for programs; dump_fibers() of runtime.hpp is for people.
// Context: fibers and plain threads; blocks the thread.
#pragma once

#include <iosfwd>

namespace weft::dump {

// Writes a JSON object with each living fiber: its id, name, state, wait, callable and place of
// spawn. It also has the seconds for which the fiber has been parked or has run, if they are known
// to within ten seconds. The list is complete, but no snapshot: a running fiber may be shown in an
// earlier state. The call takes about a microsecond per fiber, and holds a lock that spawns
// sometimes need.
// Throws: std::bad_alloc, std::system_error, and what the stream throws.
void write_json(std::ostream& out);

// Writes the calls of parked fibers as flamegraph.pl and speedscope read them. Each line has one
// stack, with its calls separated by `;` and the outermost first, and its number of fibers. The
// last element is the wait. A function that the program does not export is `module+0xoffset`, which
// tools/symbolize replaces. It is a snapshot, taken in a child of fork(), in which no fiber runs.
// The fork takes about a millisecond for each 100 MB in use. Under a sanitizer the lines have only
// the waits.
// Throws: as write_json(), and std::system_error if the system refuses the fork.
void write_folded(std::ostream& out);

// Writes each cycle of fibers that wait for each other, in the form that
// RuntimeOptions::on_partial_deadlock receives, or a line that reports none. It takes some
// microseconds for each fiber that waits for other fibers or for a mutex, and holds a lock that
// spawns sometimes need. It reads other stacks by process_vm_readv, and finds nothing if the system
// refuses that call.
// Throws: as write_json().
void write_deadlocks(std::ostream& out);

}  // namespace weft::dump

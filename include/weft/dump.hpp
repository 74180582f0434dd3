// Writes lists of fibers in formats for tools; dump_fibers() of runtime.hpp writes text for people.
// Context: fibers and plain threads; each call blocks the thread.
#pragma once

#include <iosfwd>

namespace weft::dump {

// Writes a JSON object that lists each living fiber: its id and name if it has started, runtime,
// state, wait, request, callable and place of spawn. An entry also contains the seconds for which
// the fiber has been parked or has run, if they are known to within ten seconds. The list is
// complete, but not a snapshot: it may show an earlier state of a running fiber. The call takes
// about a microsecond per fiber, and holds a lock that spawns sometimes need.
// Throws: std::bad_alloc, std::system_error, and what the stream throws.
void write_json(std::ostream& out);

// Writes the call stacks of parked fibers in the format of flamegraph.pl and speedscope. Each line
// has a stack and the number of fibers with that stack. The calls are separated by `;`, the
// outermost first, and the last element names the wait. A function that the program does not export
// appears as `module+0xoffset`, which tools/symbolize replaces with the name. The output is a
// snapshot from a forked child, in which no fiber runs. The fork takes about 1 ms for each 100 MB
// in use. Under a sanitizer, the lines contain only the waits.
// Throws: whatever write_json() throws, and std::system_error if the system refuses the fork.
void write_folded(std::ostream& out);

// Writes each cycle of fibers that wait for each other, as RuntimeOptions::on_partial_deadlock
// receives it. If cycles share a fiber, writes only one of them. A line reports that there is no
// cycle; another line reports that mutexes do not record their owners. The call takes some
// microseconds for each fiber that waits for fibers or a mutex, and holds a lock that spawns may
// need. It reads stacks with process_vm_readv, and reports no cycle if the system refuses this.
// Throws: whatever write_json() throws.
void write_deadlocks(std::ostream& out);

}  // namespace weft::dump

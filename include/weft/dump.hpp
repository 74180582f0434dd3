// All fibers of a process, for programs to read. For people: dump_fibers() in runtime.hpp. The
// calls synchronize with nothing.
#pragma once

#include <iosfwd>

namespace weft::dump {

// One JSON object with each living fiber: its id, name and state, what it waits for, the type of
// its callable, where it was spawned. Never cut, but a dump is no photograph: what runs meanwhile
// may be shown as it was a moment ago. Call it from fibers and plain threads. Blocks the thread,
// for about a microsecond a fiber, and takes a lock that spawns need now and then.
// Throws std::bad_alloc, std::system_error, and what the stream throws.
void write_json(std::ostream& out);

// The calls that parked fibers are in, one line for each stack, outermost first, with `;` in
// between, and how many fibers are in it: what flamegraph.pl and speedscope read. The last element
// is what they wait for. Functions that the program does not export are `module+0xoffset`, which
// tools/symbolize replaces by names.
// A photograph: taken in a child of a fork(), while this process goes on. It takes what a fork
// takes, about a millisecond for each 100 MB in use, and no fiber's code runs in the child.
// Under a sanitizer there are no calls, only what fibers wait for. Call it from fibers and plain
// threads. Blocks the thread. Throws as write_json(), and std::system_error when the system refuses
// the fork.
void write_folded(std::ostream& out);

}  // namespace weft::dump

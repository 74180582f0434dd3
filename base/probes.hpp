// Static probes of the provider `weft`, for bpftrace, perf and SystemTap: a nop each, and a note in
// the object file that says where it is and where its arguments are. Without sys/sdt.h, or with
// -Dprobes=disabled, they are nothing at all. docs/watching.md lists them.
#pragma once

#ifdef WEFT_PROBES
#include <sys/sdt.h>
// Arguments are registers' or memory's as they are there: nothing is computed for a probe.
#define WEFT_PROBE(name, first, second) DTRACE_PROBE2(weft, name, first, second)
#else
#define WEFT_PROBE(name, first, second) static_cast<void>(0)
#endif

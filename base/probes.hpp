// Static probes of the provider `weft`, for bpftrace, perf and SystemTap. Each is a nop, and a note
// in the object file that records its place and where its arguments are. Without sys/sdt.h, or with
// -Dprobes=disabled, they compile to nothing. docs/watching.md lists them.
#pragma once

#ifdef WEFT_PROBES
#include <sys/sdt.h>
// Arguments are taken from registers or memory as they are: a probe computes nothing.
#define WEFT_PROBE(name, first, second) DTRACE_PROBE2(weft, name, first, second)
#else
#define WEFT_PROBE(name, first, second) static_cast<void>(0)
#endif

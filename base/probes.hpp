// Static probes of the provider `weft`, for bpftrace, perf and SystemTap. Each probe is a nop; a
// note in the object file records the places of the probe and of its arguments. Without sys/sdt.h,
// or with -Dprobes=disabled, the probes compile to nothing. docs/watching.md lists the probes.
#pragma once

#ifdef WEFT_PROBES
#include <sys/sdt.h>
// A probe computes nothing: a tool reads the arguments from registers or memory.
#define WEFT_PROBE(name, first, second) DTRACE_PROBE2(weft, name, first, second)
#else
#define WEFT_PROBE(name, first, second) static_cast<void>(0)
#endif

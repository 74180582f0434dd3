// Where a fiber's own calls begin.
#pragma once

#if defined(__x86_64__) || defined(__aarch64__)
extern "C" [[gnu::visibility("hidden")]] void weft_call_as_outermost(void (*function)(void*),
                                                                     void* argument);
#endif

namespace weft::fibers {

// Calls `function(argument)` in a frame at which everything ends that follows frames upwards for a
// purpose: an exception that gets here has no handler, and the process is terminated before
// anything is unwound, even if there are handlers further up, as there are for a fiber that runs
// in place on the stack of another. Debuggers and backtraces, which only look, see the frames
// above, except by frame pointers, whose chain ends here.
#if defined(__x86_64__) || defined(__aarch64__)
inline void call_as_outermost(void (*function)(void*), void* argument) {
  weft_call_as_outermost(function, argument);
}
#else
// Here handlers further up are found. A fiber on a stack of its own has none.
inline void call_as_outermost(void (*function)(void*), void* argument) { function(argument); }
#endif

}  // namespace weft::fibers

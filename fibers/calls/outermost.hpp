// The frame in which a fiber's own calls begin.
#pragma once

#if defined(__x86_64__) || defined(__aarch64__)
extern "C" [[gnu::visibility("hidden")]] void weft_call_as_outermost(void (*function)(void*),
                                                                     void* argument);
#endif

namespace weft::fibers {

// Calls `function(argument)` in a frame at which every search upwards for a handler ends. An
// exception that arrives here has no handler: the process is terminated before anything is unwound.
// That holds even if there are handlers further up, as for a fiber that runs in place on another
// fiber's stack. Debuggers and backtraces see the frames above, except by frame pointers, whose
// chain ends here.
#if defined(__x86_64__) || defined(__aarch64__)
inline void call_as_outermost(void (*function)(void*), void* argument) {
  weft_call_as_outermost(function, argument);
}
#else
// On other processors, an exception finds handlers further up, of which a fiber on its own stack
// has none.
inline void call_as_outermost(void (*function)(void*), void* argument) { function(argument); }
#endif

}  // namespace weft::fibers

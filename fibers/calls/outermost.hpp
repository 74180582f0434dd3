// Calls a fiber's function in the outermost frame of the fiber.
#pragma once

#if defined(__x86_64__) || defined(__aarch64__)
extern "C" [[gnu::visibility("hidden")]] void weft_call_as_outermost(void (*function)(void*),
                                                                     void* argument);
#endif

namespace weft::fibers {

// Calls `function(argument)` in a frame at which every search upwards for a handler ends. An
// exception that reaches this frame has no handler, so the process terminates before the stack is
// unwound. This is so even if outer frames have handlers, as when a fiber runs in place on another
// fiber's stack. Debuggers and backtraces see the outer frames, except by frame pointers, whose
// chain ends here.
#if defined(__x86_64__) || defined(__aarch64__)
inline void call_as_outermost(void (*function)(void*), void* argument) {
  weft_call_as_outermost(function, argument);
}
#else
// On other processors, an exception finds handlers in outer frames. A fiber on its own stack has no
// such handlers.
inline void call_as_outermost(void (*function)(void*), void* argument) { function(argument); }
#endif

}  // namespace weft::fibers

// The calls that a running fiber is in, seen from another thread.
#pragma once

#include "fibers/calls/backtrace.hpp"
#include "fibers/stack_space.hpp"

namespace weft::fibers {

// Returns the calls of the thread with that number if it runs on a stack of `space`. Otherwise, if
// the calls are unavailable, or under a sanitizer, it returns no calls. A thread that waits in a
// system call is not disturbed: the kernel reports where it is (/proc/self/task/*/syscall). A
// thread that computes gets a SIGURG by a timer of its own processor time. The handler records the
// registers and copies the stack. It takes no lock and allocates nothing, because the thread may be
// anywhere. A thread that begins to wait meanwhile gets the signal when its call has ended. Before
// Linux 5.11, and where timers have no task work, the signal may rarely interrupt the call. If the
// program handles SIGURG itself, nothing is sent. The caller waits for the handler, but only
// briefly. Plain threads call it; a process handles one call at a time.
[[nodiscard]] Backtrace calls_of_thread(const StackSpace& space, int thread) noexcept;

}  // namespace weft::fibers

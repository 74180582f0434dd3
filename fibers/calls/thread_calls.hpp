// Finds the call stack of a running fiber from another thread.
#pragma once

#include "fibers/calls/backtrace.hpp"
#include "fibers/stack_space.hpp"

namespace weft::fibers {

// Returns the call stack of the thread with the number `thread`, if it runs on a stack of `space`.
// Returns no calls otherwise, if the calls are unavailable, or under a sanitizer. A thread that
// waits in a system call is not disturbed: the kernel reports where it waits
// (/proc/self/task/*/syscall). A thread that computes gets a SIGURG from a timer of its own
// processor time. The handler records the registers and copies the stack. The handler takes no lock
// and allocates nothing, because the thread may be at any instruction. A thread that begins to wait
// meanwhile gets the signal after its system call. Before Linux 5.11, and where timers have no task
// work, the signal may rarely interrupt the system call. If the program handles SIGURG itself, no
// signal is sent. The caller waits briefly for the handler. Plain threads call it; a process
// handles one call at a time.
[[nodiscard]] Backtrace calls_of_thread(const StackSpace& space, int thread) noexcept;

}  // namespace weft::fibers

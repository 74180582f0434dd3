// The calls that a running fiber is in, seen from another thread.
#pragma once

#include "fibers/backtrace.hpp"
#include "fibers/stack_space.hpp"

namespace weft::fibers {

// The calls of the thread with that number, if it runs on a stack of `space`; else, and where they
// cannot be had, none. Under a sanitizer there are none either.
// A thread that waits in a system call is not disturbed: the kernel says where it is
// (/proc/self/task/*/syscall). A thread that computes gets a SIGURG by a timer of its own processor
// time, whose handler notes the registers and copies the stack: no lock is taken and nothing
// allocated on that thread, which may be anywhere. One that begins to wait meanwhile gets it when
// its call has ended (Linux before 5.11, and where timers have no task work: in rare cases within
// it). Where the program handles SIGURG itself nothing is sent. Waits for the handler, but not for
// long. From plain threads; one at a time in a process is answered.
[[nodiscard]] Backtrace calls_of_thread(const StackSpace& space, int thread) noexcept;

}  // namespace weft::fibers

// The one way from one stack to another.
#pragma once

#include <weft/detail/task.hpp>

#include "fibers/stack.hpp"

namespace weft::fibers {

// The request of a fiber that leaves: to be met once its registers are saved.
struct Departure {
  Stack* from;
  void (*after)(void* argument) noexcept;
  void* argument;
};

// First thing on every arrival, also on a fresh stack: files the context of the one who left, then
// does what it asked for. The departure is copied first, because once its `after` has run, the
// one who left may be running again elsewhere and its stack frame may be gone.
inline void arrive(Arrival arrival, Stack& here) noexcept {
  const Departure departure = *static_cast<Departure*>(arrival.data);
  here.sanitizer.arrive_from(departure.from->sanitizer);
  // Relaxed: `after` hands the stack over, if to anybody.
  departure.from->context.store(arrival.fctx, detail::relaxed);
  departure.after(departure.argument);
  here.sanitizer.go_on();
}

// Leaves `from`, the calling stack, for `to`, which no thread runs on; returns when a thread
// switches back to `from`, perhaps on another thread. `after` runs on `to`, exactly once. `thread`
// is the calling thread's; exceptions and errno travel with the stacks.
inline void switch_to(const ThreadState& thread, Stack& from, Stack& to,
                      void (*after)(void*) noexcept, void* argument) noexcept {
  Departure departure{&from, after, argument};
  // Copied first: the compiler cannot know that no write here changes them.
  ExceptionState* const exceptions = thread.exceptions;
  int* const error = thread.error;
  exceptions->copy_to(from.exceptions);
  from.saved_errno = *error;
  to.exceptions.copy_to(*exceptions);
  *error = to.saved_errno;
  from.sanitizer.leave_for(to.sanitizer, thread.between);
  // The caller's note that `to` runs now stands before this in the program: a thread that changes a
  // context has all threads execute a barrier, and then reads that note.
  asm volatile("" : : : "memory");
  arrive(jump(to.context.load(detail::relaxed), &departure), from);
}

}  // namespace weft::fibers

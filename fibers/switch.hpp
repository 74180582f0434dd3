// The only function that switches from one stack to another.
#pragma once

#include <weft/detail/task.hpp>

#include "fibers/stack.hpp"

namespace weft::fibers {

// Describes what must run after the registers of a fiber that leaves its stack have been saved.
struct Departure {
  Stack* from;
  void (*after)(void* argument) noexcept;
  void* argument;
};

// The code that arrives on a stack calls it first, also on a fresh stack. Stores the context of the
// fiber that left, and then runs its `after`. Copies the departure first, because the fiber that
// left may run elsewhere after `after`, and its frame may no longer exist.
inline void arrive(Arrival arrival, Stack& here) noexcept {
  const Departure departure = *static_cast<Departure*>(arrival.data);
  here.sanitizer.arrive_from(departure.from->sanitizer);
  // Relaxed: if `after` hands the stack over, it also publishes it.
  departure.from->context.store(arrival.fctx, detail::relaxed);
  departure.after(departure.argument);
  here.sanitizer.go_on();
}

// Switches from the caller's stack `from` to `to`, on which no thread runs. Returns when a thread,
// perhaps another thread, switches back to `from`. `after` runs on `to`, exactly once. `thread` is
// the state of the calling thread; each stack keeps its own exceptions and errno.
inline void switch_to(const ThreadState& thread, Stack& from, Stack& to,
                      void (*after)(void*) noexcept, void* argument) noexcept {
  // This is one object, because a compiler would align two objects to 16 bytes each, in the frame
  // of each parked fiber.
  struct {
    Departure departure;
    SavedContext saved;  // Set by the jump.
  } leaving;
  leaving.departure = {&from, after, argument};
  // The pointers are copied first, because the compiler cannot prove that no write here changes
  // them.
  ExceptionState* const exceptions = thread.exceptions;
  int* const error = thread.error;
  exceptions->copy_to(from.exceptions);
  from.saved_errno = *error;
  to.exceptions.copy_to(*exceptions);
  *error = to.saved_errno;
  from.sanitizer.leave_for(to.sanitizer, thread.between);
  // The caller has recorded that `to` now runs. Signal handlers and other threads read this record,
  // so the compiler must not move the stores past the jump.
  asm volatile("" : : : "memory");
  arrive(jump(to.context.load(detail::relaxed), &leaving.departure, leaving.saved), from);
}

}  // namespace weft::fibers

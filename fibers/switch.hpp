// The only function that switches from one stack to another.
#pragma once

#include <weft/detail/task.hpp>

#include "fibers/stack.hpp"

namespace weft::fibers {

// What a leaving fiber requests for the time after its registers are saved.
struct Departure {
  Stack* from;
  void (*after)(void* argument) noexcept;
  void* argument;
};

// Every arrival calls it first, also on a fresh stack. It stores the context of the fiber that
// left, and then runs its `after`. It copies the departure first: once `after` has run, that fiber
// may run elsewhere, and its frame may be gone.
inline void arrive(Arrival arrival, Stack& here) noexcept {
  const Departure departure = *static_cast<Departure*>(arrival.data);
  here.sanitizer.arrive_from(departure.from->sanitizer);
  // Relaxed: if `after` hands the stack over, it also publishes it.
  departure.from->context.store(arrival.fctx, detail::relaxed);
  departure.after(departure.argument);
  here.sanitizer.go_on();
}

// Leaves `from`, the calling stack, for `to`, which no thread runs on; returns when a thread
// switches back to `from`, perhaps on another thread. `after` runs on `to`, exactly once. `thread`
// is the calling thread's; exceptions and errno travel with the stacks.
inline void switch_to(const ThreadState& thread, Stack& from, Stack& to,
                      void (*after)(void*) noexcept, void* argument) noexcept {
  // This is one object, because a compiler would align each of two objects to 16 bytes, in the
  // frame of each parked fiber.
  struct {
    Departure departure;
    SavedContext saved;  // Set by the jump.
  } leaving;
  leaving.departure = {&from, after, argument};
  // Copied first: the compiler cannot prove that no write here changes them.
  ExceptionState* const exceptions = thread.exceptions;
  int* const error = thread.error;
  exceptions->copy_to(from.exceptions);
  from.saved_errno = *error;
  to.exceptions.copy_to(*exceptions);
  *error = to.saved_errno;
  from.sanitizer.leave_for(to.sanitizer, thread.between);
  // The caller has recorded that `to` runs now. Signal handlers and other threads read that record,
  // so the compiler must not move the stores past the jump.
  asm volatile("" : : : "memory");
  arrive(jump(to.context.load(detail::relaxed), &leaving.departure, leaving.saved), from);
}

}  // namespace weft::fibers

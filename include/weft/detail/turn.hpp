// Limits a fiber's turn: the time for which the fiber may run without waiting.
#pragma once

#include <weft/detail/atomic.hpp>

namespace weft::detail {

// Shows whether the turn of the fiber that is running on a worker is over. Each worker has its own
// Turn, in a separate cache line. All accesses are relaxed, because the flags are hints.
struct Turn {
  // A caller that reads true calls give_way(). While locks record their owners, `over` stays true,
  // so that lock() takes its slow path. Only `has_ended` then shows that a turn is over.
  Atomic<bool> over{false};
  Atomic<bool> has_ended{false};
};

}  // namespace weft::detail

// Points to the Turn of the calling thread's worker; on a plain thread, to a Turn that never ends.
// Read it only with is_turn_over(): other code may reuse the address that a thread_local had before
// a switch, although the fiber may now be on another thread.
extern "C" __thread const weft::detail::Turn* weft_current_turn;

namespace weft::detail {

// Returns whether the calling fiber's turn is over. Always true while locks record their owners.
#if defined(WEFT_MODEL)
[[nodiscard]] inline bool is_turn_over() noexcept { return false; }
#elif defined(__x86_64__)
[[nodiscard, gnu::always_inline]] inline bool is_turn_over() noexcept {
  const Turn* turn;
  bool is_over;
  // The asm is volatile and has a clobber, so every call reads the thread pointer (fs) again.
  asm volatile(
      "movq weft_current_turn@gottpoff(%%rip), %0\n\t"
      "movq %%fs:(%0), %0\n\t"
      "cmpb $0, (%0)"
      : "=&r"(turn), "=@ccne"(is_over)
      :
      : "memory");
  return is_over;
}
#else
// Not inlined, because inlined code could reuse a thread pointer that it read before a switch.
[[nodiscard]] bool is_turn_over() noexcept;
#endif

// Lets other fibers run if the calling fiber's turn is over; see give_way_if_due(). Does nothing
// if the caller is not a fiber, or must not switch (NoSwitch).
void give_way() noexcept;

// Most functions that may park call this function first, before they lock anything. Even a fiber
// that never has to wait then lets other fibers run once its turn is over. The check costs one load
// from a cache line of the worker. I/O functions, and channel functions that did not park, call it
// just before they return. Functions that never park (try_..., spawn, wake) must not call it,
// because their caller may hold a std::mutex.
[[gnu::always_inline]] inline void give_way_if_due() noexcept {
  if (is_turn_over()) [[unlikely]]
    give_way();
}

}  // namespace weft::detail

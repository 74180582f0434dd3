// The turn of a fiber: how long it may run without a wait.
#pragma once

#include <weft/detail/atomic.hpp>

namespace weft::detail {

// Whether the turn of the fiber that runs on a worker is over. It is in a cache line of the
// worker's own.
// Relaxed throughout: hints.
struct Turn {
  // A caller that sees true calls give_way(). While locks record their owners, the flag stays set,
  // even for plain threads, and `has_ended` shows whether the turn is over.
  Atomic<bool> over{false};
  Atomic<bool> has_ended{false};
};

}  // namespace weft::detail

// The turn of the calling thread's worker; for plain threads, a turn that is never over. Only
// is_turn_over() reads it: a compiler may keep the address of a thread_local across a switch.
extern "C" __thread const weft::detail::Turn* weft_current_turn;

namespace weft::detail {

// Returns whether the calling fiber's turn is over.
#if defined(WEFT_MODEL)
[[nodiscard]] inline bool is_turn_over() noexcept { return false; }
#elif defined(__x86_64__)
[[nodiscard, gnu::always_inline]] inline bool is_turn_over() noexcept {
  const Turn* turn;
  bool is_over;
  // Volatile and with a clobber, so that every call reads the thread register again.
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
// Not inlined, so that its thread-pointer arithmetic cannot be shared between calls.
[[nodiscard]] bool is_turn_over() noexcept;
#endif

// Lets other fibers run if the calling fiber's turn is over: see give_way_if_due(). Does nothing
// outside of fibers.
void give_way() noexcept;

// Called at the start of each call that may park, before anything is locked. So a fiber that never
// has to wait lets other fibers run once its turn of 1 ms is over. It costs one load from a line of
// the worker's own. The calls of a channel check only when they do not park, and at their end. It
// must not be used in calls that promise not to park (try_..., spawn, wake), because these may be
// made with a thread's mutex held.
[[gnu::always_inline]] inline void give_way_if_due() noexcept {
  if (is_turn_over()) [[unlikely]]
    give_way();
}

}  // namespace weft::detail

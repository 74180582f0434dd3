// Limits a fiber's turn: the time for which the fiber may run without a wait.
#pragma once

#include <weft/detail/atomic.hpp>

namespace weft::detail {

// Shows whether the turn of the fiber that runs on a worker is over. Each worker has its own Turn,
// in a separate cache line. All accesses are relaxed, because the flags are hints.
struct Turn {
  // A caller that sees true calls give_way(). While locks record their owners, `over` stays set,
  // even for plain threads; `has_ended` then shows whether the turn is over.
  Atomic<bool> over{false};
  Atomic<bool> has_ended{false};
};

}  // namespace weft::detail

// Points to the Turn of the calling thread's worker; on a plain thread, to a Turn that is never
// over. Only is_turn_over() may read the pointer, because a compiler may reuse the address of a
// thread_local after a switch, on another thread.
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
// Not inlined: the compiler must not reuse a thread pointer that it computed before a switch.
[[nodiscard]] bool is_turn_over() noexcept;
#endif

// Lets other fibers run if the calling fiber's turn is over; see give_way_if_due(). Does nothing
// outside of fibers.
void give_way() noexcept;

// Each call that may park calls this function first, before it locks anything. So a fiber that
// never has to wait lets other fibers run once its turn is over. The check costs one load
// from a cache line of the worker. Channel calls call it only at their end, and only if they did
// not park. Calls that never park (try_..., spawn, wake) must not call it, because their caller may
// hold a std::mutex.
[[gnu::always_inline]] inline void give_way_if_due() noexcept {
  if (is_turn_over()) [[unlikely]]
    give_way();
}

}  // namespace weft::detail

// Finds the worker of the calling thread.
#pragma once

#include <weft/detail/turn.hpp>

namespace weft::scheduler {
class Worker;
}

// Non-null in workers' threads. Only current_worker() reads this variable. In other functions, the
// compiler could keep its address across a switch, although the fiber may then be on another
// thread.
extern "C" {
extern __thread weft::scheduler::Worker* weft_current_worker;
// The Turn of plain threads. Its flag `over` is false unless locks record their owners.
extern weft::detail::Turn weft_endless_turn;
}

namespace weft::scheduler {

// Returns the worker of the calling thread, or nullptr on a plain thread. The result must never be
// kept across a call that may switch.
#if defined(__x86_64__)
[[nodiscard]] inline Worker* current_worker() noexcept {
  Worker* worker;
  // `volatile` and the clobber make every call read the thread register again.
  asm volatile(
      "movq weft_current_worker@gottpoff(%%rip), %0\n\t"
      "movq %%fs:(%0), %0"
      : "=r"(worker)
      :
      : "memory");
  return worker;
}
#else
// Not inlined: otherwise, the compiler could reuse a thread pointer from before a switch.
[[nodiscard]] Worker* current_worker() noexcept;
#endif

}  // namespace weft::scheduler

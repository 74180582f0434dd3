// Finds the worker of the calling thread.
#pragma once

#include <weft/detail/turn.hpp>

namespace weft::scheduler {
class Worker;
}

// A worker thread has it set from its start to its end. Only current_worker() reads it: elsewhere a
// compiler may keep its address across a switch, although the fiber may change threads.
extern "C" {
extern __thread weft::scheduler::Worker* weft_current_worker;
// The turn of a thread that is not a worker. It ends only if locks record their owners.
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
// Not inlined, so that its thread-pointer arithmetic cannot be shared between calls.
[[nodiscard]] Worker* current_worker() noexcept;
#endif

}  // namespace weft::scheduler

// Finds the worker of the calling thread.
#pragma once

#include <weft/detail/turn.hpp>

namespace weft::scheduler {
class Worker;
}

// Each worker thread sets this variable once. Only current_worker() reads it: a compiler may keep
// the address of a thread_local across a switch, after which the fiber may run on another thread.
extern "C" {
extern __thread weft::scheduler::Worker* weft_current_worker;
// The turn of a thread that is not a worker. It never ends.
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

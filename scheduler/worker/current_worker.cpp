#include "scheduler/worker/current_worker.hpp"

extern "C" {
constinit weft::detail::Turn weft_endless_turn;
__thread weft::scheduler::Worker* weft_current_worker = nullptr;
__thread const weft::detail::Turn* weft_current_turn = &weft_endless_turn;
}

namespace weft::scheduler {

#if !defined(__x86_64__)
[[gnu::noinline]] Worker* current_worker() noexcept {
  Worker* worker = weft_current_worker;
  asm volatile("" : "+r"(worker) : : "memory");
  return worker;
}
#endif

}  // namespace weft::scheduler

#if !defined(__x86_64__)
[[gnu::noinline]] bool weft::detail::is_turn_over() noexcept {
  const Turn* turn = weft_current_turn;
  asm volatile("" : "+r"(turn) : : "memory");
  return turn->over.load(relaxed);  // Relaxed: the flag is a hint, which a later call reads again.
}
#endif

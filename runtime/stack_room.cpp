#include <weft/detail/stack_room.hpp>

#include "scheduler/worker/current_worker.hpp"
#include "scheduler/worker/worker.hpp"

namespace weft::detail {

StackRoom stack_room() noexcept {
  scheduler::Worker* const worker = scheduler::current_worker();
  const fibers::Fiber* const fiber = worker == nullptr ? nullptr : worker->current_fiber();
  if (fiber == nullptr) return {};
  // Relaxed: only the fiber itself changes its stack.
  return {fibers::stack_bytes(fiber->stack_class()),
          fibers::room_left(*fiber->stack.load(relaxed))};
}

}  // namespace weft::detail

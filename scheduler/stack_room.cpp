#include <weft/detail/stack_room.hpp>

#include "scheduler/current_worker.hpp"
#include "scheduler/worker.hpp"

namespace weft::detail {

StackRoom stack_room() noexcept {
  scheduler::Worker* const worker = scheduler::current_worker();
  const fibers::Fiber* const fiber = worker == nullptr ? nullptr : worker->current_fiber();
  if (fiber == nullptr) return {};
  const auto* const here = static_cast<const char*>(__builtin_frame_address(0));
  const char* const lowest = fiber->stack.load(relaxed)->lowest;  // Relaxed: its own.
  return {fibers::stack_bytes(fiber->stack_class()), static_cast<std::size_t>(here - lowest)};
}

}  // namespace weft::detail

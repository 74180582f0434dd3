// Names fibers.
#include <weft/detail/trace_event.hpp>
#include <weft/this_fiber.hpp>

#include "scheduler/worker/current_worker.hpp"
#include "scheduler/worker/worker.hpp"

namespace weft {

using scheduler::current_worker;
using scheduler::Worker;

namespace {

// Returns the header of the calling fiber's stack; null outside of fibers. Relaxed: the stack
// of a running fiber does not change.
fibers::Stack* stack_here() noexcept {
  Worker* worker = current_worker();
  fibers::Fiber* fiber = worker == nullptr ? nullptr : worker->current_fiber();
  return fiber == nullptr ? nullptr : fiber->stack.load(detail::relaxed);
}

}  // namespace

std::string_view this_fiber::name() noexcept {
  const fibers::Stack* stack = stack_here();
  return stack == nullptr ? std::string_view{} : stack->name.view();
}

void this_fiber::set_name(std::string_view name) noexcept {
  fibers::Stack* stack = stack_here();
  if (stack == nullptr) return;
  stack->name.assign(name);
  if (detail::is_tracing()) [[unlikely]]
    current_worker()->desk().recorder.note_text(detail::TraceKind::name, stack->name.view());
}

}  // namespace weft

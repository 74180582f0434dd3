// Finds the caller's list of FiberLocal values: in the header of a fiber's stack, or in a thread.
#include <weft/detail/local_node.hpp>

#include "scheduler/worker/current_worker.hpp"
#include "scheduler/worker/worker.hpp"

namespace weft::detail {

namespace {

// Not inlined, because a compiler could otherwise reuse the thread_local's address after the fiber
// has moved to another thread.
[[gnu::noinline]] LocalNode*& thread_locals() noexcept {
  struct ThreadLocals {
    LocalNode* first = nullptr;
    ~ThreadLocals() { destroy_all(first); }
  };
  thread_local ThreadLocals locals;
  return locals.first;
}

}  // namespace

LocalNode*& locals() noexcept {
  scheduler::Worker* worker = scheduler::current_worker();
  // Outside of fibers, the caller is a plain thread, or a handler that a worker calls on its own
  // stack.
  fibers::Fiber* fiber = worker == nullptr ? nullptr : worker->current_fiber();
  if (fiber == nullptr) return thread_locals();
  return fiber->stack.load(relaxed)->locals;  // Relaxed: a running fiber's stack never changes.
}

}  // namespace weft::detail

#include "runtime/own_runtime.hpp"

#include <weft/detail/atomic.hpp>
#include <weft/detail/own_runtime.hpp>

#include "scheduler/registry.hpp"
#include "scheduler/scheduler.hpp"
#include "scheduler/worker/current_worker.hpp"
#include "scheduler/worker/worker.hpp"

namespace weft {

namespace {

// Order
//   [end-call]  on_runtime_end publishes the call (release) -> announce_end makes it (acquire).
constinit detail::Atomic<void (*)() noexcept> end_call{nullptr};

}  // namespace

void runtime::announce_end() noexcept {
  if (void (*const call)() noexcept = end_call.load(detail::acquire)) call();  // [end-call]
}

unsigned detail::concurrency() noexcept {
  scheduler::Worker* const worker = scheduler::current_worker();
  if (worker != nullptr) return worker->shared().active().usual();
  const scheduler::Choice choice;
  return choice.get() == nullptr ? 1 : choice.get()->shared().active().usual();
}

bool detail::runtime_is_ending() noexcept {
  scheduler::Worker* const worker = scheduler::current_worker();
  return worker != nullptr && worker->shared().scheduler().is_ending();
}

void detail::on_runtime_end(void (*call)() noexcept) noexcept {
  end_call.store(call, release);  // [end-call]
}

}  // namespace weft

#include "scheduler/runtime_end.hpp"

#include <weft/detail/waist.hpp>

#include "scheduler/scheduler.hpp"
#include "scheduler/worker/current_worker.hpp"
#include "scheduler/worker/worker.hpp"

namespace weft {

namespace {

// Order
//   [end-call]  on_runtime_end publishes the call (release) -> announce_end makes it (acquire).
constinit detail::Atomic<void (*)() noexcept> end_call{nullptr};

}  // namespace

void scheduler::announce_end() noexcept {
  if (void (*const call)() noexcept = end_call.load(detail::acquire)) call();  // [end-call]
}

bool detail::runtime_is_ending() noexcept {
  scheduler::Worker* const worker = scheduler::current_worker();
  return worker != nullptr && worker->shared().scheduler().is_ending();
}

void detail::on_runtime_end(void (*call)() noexcept) noexcept {
  end_call.store(call, release);  // [end-call]
}

}  // namespace weft

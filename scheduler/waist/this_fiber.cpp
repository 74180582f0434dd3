#include <weft/this_fiber.hpp>

#include <weft/detail/trace_event.hpp>
#include <weft/detail/waiter.hpp>

#include "fibers/stack_space.hpp"
#include "scheduler/waist/check_is_fiber.hpp"
#include "scheduler/waist/timed_wait.hpp"
#include "scheduler/worker/current_worker.hpp"
#include "scheduler/worker/worker.hpp"

namespace weft::detail {

void sleep_until(Deadline deadline) noexcept {
  scheduler::Worker* worker = scheduler::current_worker();
  if (worker != nullptr && !deadline.is_never()) {
    scheduler::check_is_fiber(*worker, WaitReason::sleep);
    scheduler::TimedWait wait(deadline);
    fibers::Fiber& fiber = *worker->current_fiber();
    wait.set_waker(Waker::of_fiber(&fiber));
    fiber.set_ready_since(deadline.nanoseconds());
    // This function runs after the switch, on another stack.
    worker->park(
        {[](void* begins) noexcept { static_cast<scheduler::TimedWait*>(begins)->begin_sleep(); },
         &wait},
        WaitReason::sleep);
    return;
  }
  // Only the clock uses this claim.
  Claim claim;
  (void)park_until({[](void*) noexcept {}, nullptr}, WaitReason::sleep, deadline, claim);
}

}  // namespace weft::detail

namespace weft::this_fiber {

namespace {

// Returns the calling fiber; nullptr on a plain thread, and in a handler that a worker calls on its
// own stack.
fibers::Fiber* current_fiber() noexcept {
  scheduler::Worker* worker = scheduler::current_worker();
  return worker == nullptr ? nullptr : worker->current_fiber();
}

// Returns the header of the calling fiber's stack; nullptr outside of fibers.
fibers::Stack* current_stack() noexcept {
  fibers::Fiber* fiber = current_fiber();
  return fiber == nullptr ? nullptr : fiber->stack.load(detail::relaxed);
}

}  // namespace

void yield() noexcept { detail::yield(); }

void sleep_until(Deadline deadline) noexcept {
  if (!deadline.passed()) detail::sleep_until(deadline);
}

bool sleep_until(Deadline deadline, const Until& until) noexcept {
  const Until limit = until.but_before(deadline);
  if (!limit.is_over()) {
    // wait_in_until() requires a lock and a list, although no other thread uses them here.
    detail::SpinLock lock;
    detail::WaitList list;
    detail::Waiter self;
    lock.lock();
    (void)detail::wait_in_until(list, lock, self, detail::WaitReason::sleep, limit);
  }
  return deadline.passed();
}

std::uint64_t id() noexcept {
  const fibers::Stack* stack = current_stack();
  // Relaxed: the number of a running fiber does not change.
  return stack == nullptr ? 0 : stack->fiber_id.load(detail::relaxed);
}

// Never inlined, so that the caller's whole frame is above the frame of this function.
[[gnu::noinline]] void trim_stack() noexcept {
  const fibers::Stack* stack = current_stack();
  if (stack != nullptr) fibers::give_back_below(*stack, __builtin_frame_address(0));
}

bool is_fiber() noexcept { return current_fiber() != nullptr; }

NoSwitch::NoSwitch() noexcept {
  if (fibers::Stack* stack = current_stack()) ++stack->no_switch;
}

NoSwitch::~NoSwitch() {
  if (fibers::Stack* stack = current_stack()) --stack->no_switch;
}

bool may_switch() noexcept {
  const fibers::Stack* stack = current_stack();
  return stack == nullptr || stack->no_switch == 0;
}

Pin::Pin() noexcept {
  const fibers::Fiber* fiber = current_fiber();
  pins_ = fiber != nullptr && !fiber->is_pinned();
  if (pins_) scheduler::current_worker()->desk().pin_running();
}

Pin::~Pin() {
  if (pins_) scheduler::current_worker()->desk().unpin_running();
}

}  // namespace weft::this_fiber

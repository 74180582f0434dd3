// Implements the waist: each function first checks whether a fiber or a plain thread calls it.
#include <weft/detail/turn.hpp>
#include <weft/detail/waist.hpp>

#include <algorithm>
#include <new>
#include <utility>

#include "base/parker.hpp"
#include "base/shake.hpp"
#include "base/thread.hpp"
#include "scheduler/registry.hpp"
#include "scheduler/scheduler.hpp"
#include "scheduler/upkeep/deadlock.hpp"
#include "scheduler/waist/check_is_fiber.hpp"
#include "scheduler/waist/destination.hpp"
#include "scheduler/waist/timed_wait.hpp"
#include "scheduler/worker/current_worker.hpp"

namespace weft::detail {

using fibers::Fiber;
using scheduler::current_worker;
using scheduler::Worker;
namespace shake = base::shake;

struct ThreadSeat {
  base::Parker parker;
  // True if the waker must call ParkedThreads::end() for the thread. Written before the waiter is
  // published.
  bool counted = false;
};

namespace {

// In a build with -Dshake=true, sometimes yields in a fiber that has just returned from a park.
void go_on_later() noexcept {
  if (!shake::chance(shake::Point::give_way)) return;
  if (Worker* worker = current_worker()) worker->yield();
}

// Fibers never call this function, because a fiber may move to another thread.
[[gnu::noinline]] ThreadSeat& thread_seat() noexcept {
  thread_local ThreadSeat seat;
  return seat;
}

// A timed park in progress, on the stack of the parked fiber.
struct TimedPark {
  After after;
  scheduler::TimedWait wait;

  // Runs after the switch, and does not use this object once the wait has begun.
  static void start(void* timed_park) noexcept {
    auto* self = static_cast<TimedPark*>(timed_park);
    const After after = self->after;
    self->wait.begin();
    after.call(after.argument);
  }
};

// If this function were inlined, park() would save more registers, even when a fiber calls it.
[[gnu::noinline]] void park_thread(After after, WaitReason reason) noexcept {
  ThreadSeat& seat = thread_seat();
  const bool counted = scheduler::ends_from_inside(reason);
  seat.counted = counted;
  after.call(after.argument);
  // The thread counts as parked only after it has called `after`: until then, it can still wake
  // fibers or other threads.
  if (counted) scheduler::ParkedThreads::begin();
  (void)seat.parker.park_until(Deadline::never());
}

Claim::Winner park_thread_until(After after, WaitReason reason, Deadline deadline,
                                Claim& claim) noexcept {
  if (deadline.is_never()) {
    park_thread(after, reason);
    return claim.winner();
  }
  ThreadSeat& seat = thread_seat();
  seat.counted = false;
  after.call(after.argument);
  base::Parker& parker = seat.parker;
  if (!parker.park_until(deadline)) {
    if (claim.try_claim(Claim::kClock)) return Claim::kClock;
    // A notifier has won the claim, and will wake this thread. This wait consumes the wake, so that
    // the wake does not end the next park.
    (void)parker.park_until(Deadline::never());
  }
  return claim.winner();
}

}  // namespace

// Dumps show which code spawned a fiber. The next two functions must not be inlined, so that their
// return addresses are in that code.
[[gnu::noinline]] void spawn(Task&& task) {
  shake::delay();
  const void* caller = __builtin_return_address(0);
  if (Worker* worker = current_worker()) [[likely]] {
    worker->spawn(std::move(task), caller);
  } else {
    scheduler::Destination()->spawn(std::move(task), {}, caller);
  }
}

[[gnu::noinline]] void spawn(Task&& task, const SpawnOptions& options) {
  shake::delay();
  scheduler::Destination()->spawn(std::move(task), options, __builtin_return_address(0));
}

Waker spawn_parked(Task&& task, WaitReason reason) {
  shake::delay();
  return Waker::of_fiber(&scheduler::Destination()->spawn_parked(std::move(task), reason));
}

Waker current() noexcept {
  if (Worker* worker = current_worker()) return Waker::of_fiber(worker->current_fiber());
  return Waker::of_thread(&thread_seat());
}

void park(After after, WaitReason reason) noexcept {
  shake::delay();
  if (Worker* worker = current_worker()) {
    scheduler::check_is_fiber(*worker, reason);
    worker->park(after, reason);
    go_on_later();
    return;
  }
  park_thread(after, reason);
}

Claim::Winner park_until(After after, WaitReason reason, Deadline deadline, Claim& claim) noexcept {
  shake::delay();
  Worker* worker = current_worker();
  if (worker == nullptr) return park_thread_until(after, reason, deadline, claim);
  scheduler::check_is_fiber(*worker, reason);
  if (deadline.is_never()) {
    worker->park(after, reason);
    go_on_later();
    return claim.winner();
  }
  TimedPark timed{after, scheduler::TimedWait(deadline, &claim)};
  timed.wait.set_waker(Waker::of_fiber(worker->current_fiber()));
  worker->park({&TimedPark::start, &timed}, reason);
  go_on_later();
  const Claim::Winner winner = claim.winner();
  if (winner != Claim::kClock) timed.wait.cancel();
  return winner;
}

void wake(Waker waker) noexcept {
  shake::delay();
  if (waker.is_thread()) {
    // A plain thread sleeps only in its parker, so no other sleep has to be interrupted.
    ThreadSeat& seat = *waker.thread();
    if (seat.counted) scheduler::ParkedThreads::end();
    (void)seat.parker.unpark();
    return;
  }
  Fiber& fiber = *waker.fiber();
  fibers::happens_before(&fiber);
  auto* owner = static_cast<scheduler::Shared*>(fibers::Slab::of(fiber).owner);
  Worker* worker = current_worker();
  if (worker == nullptr || &worker->shared() != owner || shake::chance(shake::Point::wake_apart)) {
    owner->make_ready_from_outside(fiber);
  } else if (worker->current_fiber() == nullptr || shake::chance(shake::Point::wake_last)) {
    worker->make_ready_last(fiber);  // Keeps the order in which a poll found the events.
  } else {
    worker->make_ready(fiber);
  }
}

bool run_in_place(const void* target, WaitReason reason) noexcept {
  Worker* worker = current_worker();
  // The runtime's handlers, such as on_deadlock, may call this function, but are not fibers.
  if (worker == nullptr || worker->current_fiber() == nullptr) return false;
  if (shake::chance(shake::Point::run_apart)) return false;
  return worker->run_in_place(target, reason);
}

void give_way() noexcept {
  Worker* worker = current_worker();
  // The runtime's handlers, such as on_deadlock, may call this function, but are not fibers.
  if (worker != nullptr && worker->current_fiber() != nullptr) worker->give_way();
}

void yield() noexcept {
  shake::delay();
  Worker* worker = current_worker();
  // A handler of the runtime runs on a worker's own stack, so it is not a fiber, and cannot yield.
  if (worker != nullptr && worker->current_fiber() != nullptr) {
    worker->yield();
    go_on_later();
  } else {
    base::yield_processor();
  }
}

}  // namespace weft::detail

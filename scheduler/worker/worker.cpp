// The code that runs on the fibers' own stacks and switches between fibers.
#include "scheduler/worker/worker.hpp"

#include <exception>
#include <utility>
#include <weft/detail/exceptions.hpp>
#include <weft/detail/local_node.hpp>

#include "base/debug_locks.hpp"
#include "base/panic.hpp"
#include "base/shake.hpp"
#include "fibers/calls/outermost.hpp"
#include "scheduler/worker/current_worker.hpp"
#include "scheduler/worker/may_switch.hpp"

namespace weft::scheduler {

using detail::After;
using detail::relaxed;
using fibers::Fiber;
using fibers::Stack;
using Departure = Recorder::Departure;

namespace {

// How many bytes of stack a parent uses between the check in run_in_place() and the start of its
// child's task.
constexpr std::size_t kFramesOfParent = 1 << 10;

}  // namespace

inline Fiber& Worker::make_fiber(detail::Task&& task, std::uint8_t size_class, const void* caller) {
  Fiber* fiber = fibers_.take();
  if (fiber == nullptr) shared_.throw_too_many_fibers();
  fibers::happens_after(fiber);
  fiber->set_up(std::move(task), size_class, caller);
  desk_.recorder.counters().spawned.add_one();
  fibers::happens_before(fiber);
  return *fiber;
}

void Worker::spawn(detail::Task&& task, std::uint8_t size_class, const void* caller) {
  desk_.queue.make_room();
  Fiber& fiber = make_fiber(std::move(task), size_class, caller);
  desk_.recorder.spawned(fiber, caller);
  desk_.queue.push_new(fiber);
  announcer_.announce_work();
}

Fiber& Worker::spawn_parked(detail::Task&& task, detail::WaitReason reason) {
  Fiber& fiber = make_fiber(std::move(task), default_size_class_, nullptr);
  desk_.recorder.spawned_parked(fiber, reason);
  return fiber;
}

void Worker::make_ready(Fiber& fiber) noexcept {
  desk_.recorder.ready(fiber);
  if (fiber.is_pinned()) [[unlikely]]
    return shared_.desks().send_home(fiber, desk_);
  desk_.queue.put_next(fiber);
  announcer_.announce_work();
}

void Worker::make_ready_last(Fiber& fiber) noexcept {
  desk_.recorder.ready(fiber);
  if (fiber.is_pinned()) [[unlikely]]
    return shared_.desks().send_home(fiber, desk_);
  desk_.queue.push_last(fiber);
  announcer_.announce_work();
}

// Returns nullptr if the queue is empty, or if the worker must return to its idle stack for a look.
inline Fiber* Worker::take_next_at_hand() noexcept {
  const std::uint32_t left = desk_.decisions_left.load(relaxed) - 1;
  desk_.decisions_left.store(left, relaxed);
  if (left == 0 || base::shake::chance(base::shake::Point::look_round)) [[unlikely]] {
    look_due_ = true;
    return nullptr;
  }
  return desk_.queue.pop();
}

inline void Worker::bind(Fiber& fiber, Stack& stack) noexcept {
  stack.fiber = &fiber;
  stack.name.clear();
  stack.fiber_id.store(ids_.take(), relaxed);  // Relaxed: for dumps.
  fiber.bind(stack);
}

// Binds the fiber to a stack on which this worker is not running. Clears the exception state that
// the stack's former user left, because a switch to the stack would restore it.
void Worker::bind_to_switch(Fiber& fiber, Stack& stack) noexcept {
  stack.exceptions = {};
  bind(fiber, stack);
}

// Returns the stack on which `next` continues; nullptr if `next` is new and no hot stack is
// available.
Stack* Worker::resume_point(Fiber& next) noexcept {
  if (Stack* stack = next.stack.load(relaxed)) return stack;
  Stack* stack = stacks_.take_hot(next.size_class);
  if (stack != nullptr) bind_to_switch(next, *stack);
  return stack;
}

// Switches from the stack `from` to `next`. Switches to the idle stack if there is no next fiber,
// or if the next fiber needs a stack.
inline void Worker::leave(Departure how, Stack& from, Fiber* next, After after) noexcept {
  check_may_switch(from);
  Stack* to = next == nullptr ? nullptr : resume_point(*next);
  if (to == nullptr) {
    handed_over_ = next;
    desk_.recorder.idles(how);
    to = &idle_stack_;
  } else {
    desk_.recorder.runs(how, *next);
  }
  fibers::switch_to(thread_, from, *to, after.call, after.argument);
}

void Worker::park(After after, detail::WaitReason reason) noexcept {
  Fiber& fiber = *current_fiber();
  Recorder::parks(fiber, reason);
  leave(Departure::left, *fiber.stack.load(relaxed), take_next_at_hand(), after);
  fibers::happens_after(&fiber);
}

void Worker::yield() noexcept {
  Fiber& fiber = *current_fiber();
  Fiber* next = take_next_at_hand();
  if (next == nullptr && !look_due_ && !desk_.has_work_hint() && desk_.pinned.empty_hint() &&
      !shared_.has_outside_work_hint()) {
    check_may_switch(*fiber.stack.load(relaxed));
    return;
  }
  set_wait_reason(fiber, detail::WaitReason::yield);
  leave(Departure::left, *fiber.stack.load(relaxed), next,
        {[](void* yielded) noexcept {
           current_worker()->make_ready_last(*static_cast<Fiber*>(yielded));
         },
         &fiber});
}

// Switches to the idle stack, where the worker looks for other work, because the turn is over.
void Worker::give_way() noexcept {
  if (!desk_.begin_turn()) return;
  if (current_fiber()->stack.load(relaxed)->no_switch != 0) return;
  if constexpr (base::kDebugLocks) {
    if (base::locks_held() > 0) return;
  }
  desk_.ask_to_look();
  yield();
}

void Worker::run_task(Fiber& fiber) {
  const auto& handler = shared_.options().on_exception;
  // Without on_exception, no frame catches the exception. The process then ends before the stack is
  // unwound, so a debugger can show where the exception was thrown.
  if (!handler) return fiber.task.run();
  WEFT_TRY { fiber.task.run(); }
  WEFT_CATCH_ALL { handler(std::current_exception()); }
}

// Frees the record of a fiber that has ended, and counts the fiber as finished.
void Worker::retire(Fiber& fiber) noexcept {
  become_free(fiber);
  fibers_.give(fiber);
  desk_.recorder.counters().finished.add_one();
}

// Ends `fiber` and returns the next fiber that is bound to `here`. It returns at once if the next
// fiber is unstarted and can run on the same hot stack without a switch. Otherwise the stack
// becomes free, and the function returns when a worker runs another fiber on it.
inline Fiber& Worker::end_fiber(Fiber& fiber, Stack& here) noexcept {
  check_may_switch(here);
  Worker& worker = *current_worker();
  here.fiber = nullptr;
  worker.retire(fiber);
  Fiber* next = worker.take_next_at_hand();
  if (next != nullptr && next->stack.load(relaxed) == nullptr &&
      next->size_class == here.size_class) {
    worker.bind(*next, here);
    worker.desk_.recorder.runs(Departure::ended, *next);
    return *next;
  }
  return worker.give_stack(here, next);
}

// Continues with `next`, and frees the stack `here`. When a worker later runs another fiber on
// `here`, this function returns that fiber.
Fiber& Worker::give_stack(Stack& here, Fiber* next) noexcept {
  leave(Departure::ended, here, next,
        {[](void* given) noexcept {
           Worker& worker = *current_worker();
           auto& stack = *static_cast<Stack*>(given);
           if (worker.shared_.stack_shortage().anyone_waits()) [[unlikely]]
             return worker.stack_waits_.pass_on(stack);
           worker.stacks_.give(stack);
         },
         &here});
  return *here.fiber;
}

// Returns a fiber that the running fiber may run inlined: one that was recently spawned here and
// has not started; nullptr if there is none.
Fiber* Worker::take_child(const void* target) noexcept {
  const std::uint8_t digest = Fiber::digest_of(target);
  return desk_.queue.take_recent(
      [digest](const Fiber& fiber) { return fiber.target_digest.load(relaxed) == digest; },
      [this, target](const Fiber& fiber) {
        return fiber.stack.load(relaxed) == nullptr && fiber.size_class == default_size_class_ &&
               fiber.task.join_target() == target;
      });
}

bool Worker::run_in_place(const void* target, detail::WaitReason reason) noexcept {
  Fiber& waiting = *current_fiber();
  Stack& stack = *waiting.stack.load(relaxed);
  check_may_switch(stack);
  // Each inlined child counts toward the next look. Otherwise, a fiber that only forks and joins
  // could keep all other fibers waiting.
  const std::uint32_t left = desk_.decisions_left.load(relaxed);
  if (left <= 1) return false;
  // A pinned fiber inlines no child, because the child may end on another worker.
  if (waiting.is_pinned()) return false;
  // The child must have at least as much room as it would have on a separate stack.
  if (fibers::room_left(stack) < fibers::stack_bytes(default_size_class_) + kFramesOfParent)
    return false;
  Fiber* child = take_child(target);
  // Announces the queued fibers, because thieves may have missed them while take_child() ran.
  announcer_.announce_work();
  if (child == nullptr) return false;
  desk_.decisions_left.store(left - 1, relaxed);
  become_inlining(waiting, reason);
  run_inlined(waiting, *child);
  return true;
}

// Runs `child` to its end on the stack of `parent`, the caller. The child is a complete fiber: it
// may park, and continue on another worker, with the parent's frames below its own. It therefore
// has its own stack header, in this frame. The sanitizers treat both fibers' frames as one stack.
void Worker::run_inlined(Fiber& parent, Fiber& child) noexcept {
  Stack& below = *parent.stack.load(relaxed);
  Stack here;
  here.lowest = below.lowest;
  here.sanitizer = below.sanitizer;
  Worker* worker = current_worker();
  below.exceptions = std::exchange(*worker->thread_.exceptions, {});
  below.fiber = &child;
  worker->bind(child, here);
  worker->desk_.recorder.runs(Departure::inlines, child);
  fibers::happens_after(&child);
  // The parent's catch clauses must not catch an exception that the child throws.
  fibers::call_as_outermost(
      [](void* fiber) { current_worker()->run_task(*static_cast<Fiber*>(fiber)); }, &child);
  if (here.locals != nullptr) [[unlikely]]
    detail::destroy_all(here.locals);
  fibers::happens_before(&child);
  check_may_switch(here);
  worker = current_worker();
  worker->retire(child);
  below.fiber = &parent;
  *worker->thread_.exceptions = below.exceptions;
  worker->desk_.recorder.resumes(parent);
}

void Worker::stack_main(fibers::Arrival arrival) {
#if defined(__x86_64__)
  // Marks this frame as the outermost frame for unwinders.
  asm volatile(".cfi_undefined rip");
#elif defined(__aarch64__)
  asm volatile(".cfi_undefined x30");
#endif
  Stack& here = *current_worker()->current_fiber()->stack.load(relaxed);
  fibers::arrive(arrival, here);
  fibers::call_as_outermost(&run_fibers, &here);
}

// Runs fibers one after another, each bound to `stack`.
void Worker::run_fibers(void* stack) {
  Stack& here = *static_cast<Stack*>(stack);
  for (Fiber* fiber = here.fiber;; fiber = &end_fiber(*fiber, here)) {
    fibers::happens_after(fiber);
    fibers::happens_after(&here);  // Pairs with happens_before() of the stack's last fiber.
    current_worker()->run_task(*fiber);
    if (here.locals != nullptr) [[unlikely]]
      detail::destroy_all(here.locals);
    fibers::happens_before(fiber);
    fibers::happens_before(&here);
  }
}

// Not inlined, so that the functions that begin a sleep need no stack frame: see
// Timers::try_follow().
void Worker::lead_sleep(Timer& timer, Deadline deadline) noexcept {
  if (desk_.timers.add_sleep(timer, deadline)) announcer_.announce_event();
}

void Worker::make_ready_on(Worker& worker, Stack& stack, Fiber& fiber) noexcept {
  worker.bind_to_switch(fiber, stack);
  stack.home = worker.desk_.index;
  worker.make_ready_last(fiber);
}

void Worker::enter(Fiber& fiber) noexcept {
  Stack* stack = fiber.stack.load(relaxed);
  if (stack == nullptr) {
    stack = stack_waits_.take_stack(fiber);
    if (stack == nullptr) return stack_waits_.put_aside(fiber);
    bind_to_switch(fiber, *stack);
    stack->home = desk_.index;
  }
  desk_.recorder.runs(Recorder::Departure::left, fiber);
  fibers::switch_to(
      thread_, idle_stack_, *stack, [](void*) noexcept {}, nullptr);
}

}  // namespace weft::scheduler

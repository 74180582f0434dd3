#include "scheduler/worker/stack_waits.hpp"

#include <algorithm>

#include "scheduler/machine_clock.hpp"
#include "scheduler/shared.hpp"
#include "scheduler/tuning.hpp"

namespace weft::scheduler {

using fibers::Fiber;
using fibers::Stack;

// Returns only a cached stack while other fibers wait for a stack of this size, because a new stack
// from the system should go to a waiting fiber.
Stack* StackWaits::take_stack(const Fiber& fiber) noexcept {
  const unsigned size_class = fiber.stack_class();
  if (shared_.stack_shortage().anyone_waits_for(size_class)) [[unlikely]]
    return stacks_.take_hot(size_class);
  return stacks_.take(size_class);
}

void StackWaits::put_aside(Fiber& fiber) noexcept {
  StackShortage& shortage = shared_.stack_shortage();
  if (fiber.is_pinned()) desk_.pinned.aside().append(fiber);
  shortage.put_aside(fiber, machine_now());
  // While fibers wait for stacks, spawns must fail, so this worker must not keep free records.
  if (shared_.options().refuses_without_stacks) fibers_.empty();
}

// Returns the next fiber that waits for a stack of this size and may run here.
Fiber* StackWaits::take_next(unsigned size_class) noexcept {
  StackShortage& shortage = shared_.stack_shortage();
  Chain& aside = desk_.pinned.aside();
  if (!aside.is_empty() && aside.first->stack_class() == size_class) {
    shortage.note_pinned_served(size_class);
    return aside.take_first();
  }
  return shortage.take(size_class);
}

// While fibers wait for stacks, a freed stack goes to the first waiting fiber. If all waiting
// fibers are pinned to other workers, the stack goes to the shared store, where the other workers
// find it.
void StackWaits::pass_on(Stack& stack) noexcept {
  const unsigned size_class = stack.size_class;
  if (Fiber* fiber = take_next(size_class)) return make_ready_on(stack, *fiber);
  stacks_.give(stack);
  if (shared_.stack_shortage().anyone_pinned_waits_for(size_class)) stacks_.empty();
}

// Requests stacks from the system at each call, because only this worker can run its pinned fibers.
// Returns true if all these fibers have been served.
bool StackWaits::serve_pinned() noexcept {
  Chain& aside = desk_.pinned.aside();
  while (!aside.is_empty()) {
    Fiber& fiber = *aside.take_first();
    Stack* stack = stacks_.take(fiber.stack_class());
    if (stack == nullptr) {
      // The fiber moves to the end of the list, because the next fiber may need a smaller stack.
      aside.append(fiber);
      return false;
    }
    shared_.stack_shortage().note_pinned_served(fiber.stack_class());
    make_ready_on(*stack, fiber);
  }
  return true;
}

// Returns true if all fibers that wait for stacks of this size have been served.
bool StackWaits::serve_size(unsigned size_class, bool asks_system) noexcept {
  StackShortage& shortage = shared_.stack_shortage();
  while (shortage.is_listed(size_class)) {
    Stack* stack = asks_system ? stacks_.take(size_class) : stacks_.take_hot(size_class);
    if (stack == nullptr) return false;
    Fiber* fiber = shortage.take(size_class);
    if (fiber == nullptr) {
      stacks_.give(*stack);
      return true;
    }
    make_ready_on(*stack, *fiber);
  }
  return true;
}

void StackWaits::serve() noexcept {
  StackShortage& shortage = shared_.stack_shortage();
  const std::int64_t now = machine_now();
  const bool asks_system = shortage.begin_request(now);
  bool is_refused = !serve_pinned();
  for (unsigned size_class = 0; size_class < fibers::kStackSizes; ++size_class) {
    if (!serve_size(size_class, asks_system) && asks_system) is_refused = true;
  }
  if (is_refused) shortage.report(now);
}

Deadline StackWaits::prepare_for_sleep(Deadline limit, std::int64_t now) noexcept {
  const StackShortage& shortage = shared_.stack_shortage();
  if (shortage.is_recent(now)) [[unlikely]]
    stacks_.empty();
  if (!shortage.anyone_waits()) return limit;
  const bool asks =
      shared_.deadlock_watch().is_on_watch(desk_.index) || !desk_.pinned.aside().is_empty();
  return asks ? std::min(limit, Deadline::at_nanoseconds(now + tuning::kStackRequestPause)) : limit;
}

}  // namespace weft::scheduler

#include "scheduler/queues/inject_queue.hpp"

#include "fibers/fiber.hpp"

namespace weft::scheduler {

using detail::acquire;
using detail::relaxed;
using detail::release;
using fibers::Fiber;

void InjectQueue::push(Fiber& fiber) noexcept {
  Fiber* newest = newest_.load(relaxed);
  do {
    fiber.next = newest;
  } while (!newest_.compare_exchange_weak(newest, &fiber, release, relaxed));  // [inject]
}

Chain InjectQueue::take_all() noexcept {
  if (empty_hint()) return {};
  Chain chain;
  for (Fiber* fiber = newest_.exchange(nullptr, acquire); fiber != nullptr;) {  // [inject]
    Fiber* older = fiber->next;
    chain.prepend(*fiber);
    fiber = older;
  }
  return chain;
}

}  // namespace weft::scheduler

#include "scheduler/queues/overflow_queue.hpp"

#include <algorithm>

#include "fibers/fiber.hpp"

namespace weft::scheduler {

using detail::relaxed;
using fibers::Fiber;

void OverflowQueue::make_room() {
  // This check needs no lock: other threads only remove chains, so at worst the queue grows
  // although it has room.
  if (size_hint() < capacity_) return;
  const std::size_t larger_capacity = std::max<std::size_t>(capacity_ * 2, 16);
  auto larger = std::make_unique<Fiber*[]>(larger_capacity);
  const detail::SpinGuard guard(lock_);
  for (std::size_t i = 0; i < size_hint(); ++i) larger[i] = at(i);
  first_ = 0;
  capacity_ = larger_capacity;
  // The old array is freed after the unlock, because `larger` was declared before the lock.
  chains_.swap(larger);
}

void OverflowQueue::push_newest(Fiber& chain) noexcept {
  const detail::SpinGuard guard(lock_);
  const std::size_t count = size_hint();
  at(count) = &chain;
  count_.store(count + 1, relaxed);
  growing_room_ = 0;
}

void OverflowQueue::push_newest_fiber(Fiber& fiber) noexcept {
  const detail::SpinGuard guard(lock_);
  const std::size_t count = size_hint();
  fiber.next = nullptr;
  if (count == 0 || growing_room_ == 0) {
    at(count) = &fiber;
    count_.store(count + 1, relaxed);
    growing_room_ = kLongest;
  } else {
    growing_end_->next = &fiber;
  }
  growing_end_ = &fiber;
  --growing_room_;
}

bool OverflowQueue::try_push_oldest(Fiber& chain) noexcept {
  const detail::SpinGuard guard(lock_);
  const std::size_t count = size_hint();
  if (count == capacity_) return false;
  if (count == 0) growing_room_ = 0;
  first_ = (first_ + capacity_ - 1) % capacity_;
  at(0) = &chain;
  count_.store(count + 1, relaxed);
  return true;
}

Fiber* OverflowQueue::take_newest() noexcept {
  if (size_hint() == 0) return nullptr;
  const detail::SpinGuard guard(lock_);
  const std::size_t count = size_hint();
  if (count == 0) return nullptr;
  count_.store(count - 1, relaxed);
  growing_room_ = 0;
  return at(count - 1);
}

Fiber* OverflowQueue::take_oldest() noexcept {
  if (size_hint() == 0) return nullptr;
  const detail::SpinGuard guard(lock_);
  const std::size_t count = size_hint();
  if (count == 0) return nullptr;
  Fiber* chain = at(0);
  first_ = (first_ + 1) % capacity_;
  count_.store(count - 1, relaxed);
  return chain;
}

Fiber* OverflowQueue::take_oldest_fiber() noexcept {
  if (size_hint() == 0) return nullptr;
  const detail::SpinGuard guard(lock_);
  const std::size_t count = size_hint();
  if (count == 0) return nullptr;
  Fiber* fiber = at(0);
  if (fiber->next != nullptr) {
    at(0) = fiber->next;
  } else {
    first_ = (first_ + 1) % capacity_;
    count_.store(count - 1, relaxed);
  }
  return fiber;
}

}  // namespace weft::scheduler

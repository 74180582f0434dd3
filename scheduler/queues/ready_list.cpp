#include "scheduler/queues/ready_list.hpp"

#include <algorithm>
#include <limits>

#include "fibers/fiber.hpp"

namespace weft::scheduler {

using fibers::Fiber;

void Chain::append(Fiber& fiber) noexcept {
  fiber.next = nullptr;
  (first == nullptr ? first : last->next) = &fiber;
  last = &fiber;
  ++count;
}

void Chain::append(const Chain& chain) noexcept {
  if (chain.is_empty()) return;
  (is_empty() ? first : last->next) = chain.first;
  last = chain.last;
  count += chain.count;
}

void Chain::prepend(Fiber& fiber) noexcept {
  fiber.next = first;
  if (first == nullptr) last = &fiber;
  first = &fiber;
  ++count;
}

Fiber* Chain::take_first() noexcept {
  Fiber* fiber = first;
  if (fiber == nullptr) return nullptr;
  first = fiber->next;
  --count;
  return fiber;
}

void ReadyList::push_last(Fiber& fiber) noexcept {
  fiber.next = nullptr;
  push_last(Chain{&fiber, &fiber, 1});
}

void ReadyList::push_last(const Chain& chain) noexcept {
  if (chain.is_empty()) return;
  const detail::SpinGuard guard(lock_);
  (chain_.first == nullptr ? chain_.first : chain_.last->next) = chain.first;
  chain_.last = chain.last;
  set_count(size_hint() + chain.count);
}

void ReadyList::push_first(const Chain& chain) noexcept {
  if (chain.is_empty()) return;
  const detail::SpinGuard guard(lock_);
  chain.last->next = chain_.first;
  if (chain_.first == nullptr) chain_.last = chain.last;
  chain_.first = chain.first;
  set_count(size_hint() + chain.count);
}

void ReadyList::merge(Chain chain, std::int64_t now) noexcept {
  if (chain.is_empty()) return;
  Chain here = take_everything();
  Chain merged;
  for (std::size_t left = kMostPassed; left > 0 && !here.is_empty() && !chain.is_empty();) {
    if (chain.first->ready_since(now) < here.first->ready_since(now)) {
      merged.append(*chain.take_first());
    } else {
      merged.append(*here.take_first());
      --left;
    }
  }
  merged.append(chain);
  merged.append(here);
  push_first(merged);
}

std::int64_t ReadyList::oldest_since(std::int64_t now) noexcept {
  const detail::SpinGuard guard(lock_);
  return size_hint() == 0 ? std::numeric_limits<std::int64_t>::max()
                          : chain_.first->ready_since(now);
}

Chain ReadyList::take_everything() noexcept {
  const detail::SpinGuard guard(lock_);
  const Chain all{chain_.first, chain_.last, size_hint()};
  chain_.first = chain_.last = nullptr;
  set_count(0);
  return all;
}

Chain ReadyList::take(std::size_t most) noexcept {
  if (size_hint() == 0 || most == 0) return {};
  Chain taken;
  const detail::SpinGuard guard(lock_);
  taken.count = std::min({most, kMostTaken, size_hint()});
  if (taken.count == 0) return {};
  taken.first = taken.last = chain_.first;
  for (std::size_t i = 1; i < taken.count; ++i) taken.last = taken.last->next;
  chain_.first = taken.last->next;
  taken.last->next = nullptr;
  set_count(size_hint() - taken.count);
  return taken;
}

}  // namespace weft::scheduler

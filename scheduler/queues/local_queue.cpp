#include "scheduler/queues/local_queue.hpp"

#include <algorithm>
#include <weft/detail/invariant.hpp>

#include "base/membarrier.hpp"
#include "scheduler/tuning.hpp"

namespace weft::scheduler {

using detail::acquire;
using detail::relaxed;
using detail::release;
using fibers::Fiber;

namespace {

[[nodiscard]] bool has_started(const Fiber& fiber) noexcept {
  return fiber.stack.load(relaxed) != nullptr;
}

}  // namespace

// The time matters only to thieves, so a queue that is not open to them records no time.
void LocalQueue::stamp(Fiber& fiber) const noexcept {
  if (is_open() && has_started(fiber)) fiber.set_ready_since(time_);
}

void LocalQueue::push_behind(Fiber& fiber) noexcept {
  stamp(fiber);
  waiting_.push_last(fiber);
}

// While no fiber waits, moves fibers of the chain into the ring until the ring is full. Returns the
// rest of the chain.
Chain LocalQueue::fill_ring(Chain chain) noexcept {
  while (waiting_.size_hint() == 0 && !chain.is_empty()) {
    // `next` must be read before the push, because a thief may take the fiber once it is in the
    // ring.
    Fiber* following = chain.first->next;
    if (!ring_.push(*chain.first)) break;
    chain.first = following;
    --chain.count;
  }
  return chain;
}

void LocalQueue::push_last(Chain chain) noexcept {
  const Chain rest = fill_ring(chain);
  Fiber* fiber = rest.first;
  for (std::size_t left = rest.count; left > 0; --left, fiber = fiber->next) stamp(*fiber);
  waiting_.push_last(rest);
}

void LocalQueue::push_due(Chain chain) noexcept { waiting_.push_last(fill_ring(chain)); }

// On every second call, returns the fiber that has waited longest; otherwise returns null, and the
// caller takes a fiber from the ring.
Fiber* LocalQueue::pop_overtaken() noexcept {
  WEFT_INVARIANT(overtakers_ != 0, "LocalQueue I3: some fiber was overtaken");
  overtaken_first_ = !overtaken_first_;
  if (!overtaken_first_) return nullptr;
  Fiber* fiber = waiting_.take(1).first;
  overtakers_ = fiber == nullptr ? 0 : overtakers_ - 1;
  return fiber;
}

// Moves the older half of the fibers out of the ring: the started fibers become the first waiting
// fibers, and the unstarted fibers become the newest chain.
void LocalQueue::spill() noexcept {
  spills_.store(spills_.load(detail::relaxed) + 1, detail::relaxed);
  RunQueue::Batch batch;
  const std::uint32_t count = inside([&]() noexcept { return ring_.take_half(batch); });
  Chain started;
  Chain unstarted;
  for (std::uint32_t i = 0; i < count; ++i) {
    (has_started(*batch[i]) ? started : unstarted).append(*batch[i]);
  }
  waiting_.push_first(started);
  // The fibers that stay in the ring became ready later than the fibers in `started`, but may run
  // before them.
  if (!started.is_empty()) overtakers_ += RunQueue::kCapacity - count;
  if (!unstarted.is_empty()) unstarted_.push_newest(*unstarted.first);
}

// merge() sorts fibers by the times that they recorded. Fibers from the victim's ring have old
// times or none, so they usually go before this queue's waiting fibers.
void LocalQueue::take_over(Chain stolen) noexcept { waiting_.merge(fill_ring(stolen), time_); }

// Appends a chain of new fibers to the queue; null means an empty chain.
void LocalQueue::adopt(Fiber* chain) noexcept {
  while (chain != nullptr) {
    Fiber* following = chain->next;
    push_last(*chain);
    chain = following;
  }
}

// The ring is empty, so it has room for a chain, which fills at most half of it. A refill takes so
// few waiting fibers that the prefetched part of their stacks is still in the innermost cache when
// they run.
Fiber* LocalQueue::refill() noexcept {
  Chain waiting = waiting_.take(tuning::kFetched);
  Fiber* unstarted = waiting.is_empty() ? unstarted_.take_newest() : nullptr;
  while (Fiber* fiber = waiting.take_first()) {
    fibers::prefetch_frames(fiber->stack.load(relaxed));
    (void)ring_.push(*fiber);
  }
  while (unstarted != nullptr) {
    Fiber* following = unstarted->next;
    (void)ring_.push(*unstarted);
    unstarted = following;
  }
  return ring_.pop();
}

void LocalQueue::reach_oldest() noexcept {
  constexpr std::size_t kChainsPerFiber = tuning::kNewFibersPerReached / (RunQueue::kCapacity / 2);
  const std::size_t wanted = 1 + unstarted_.size_hint() / kChainsPerFiber;
  for (std::size_t left = std::min(wanted, tuning::kMostReached); left > 0; --left) {
    Fiber* fiber = unstarted_.take_oldest_fiber();
    if (fiber == nullptr) return;
    push_last(*fiber);
  }
}

Chain LocalQueue::take_all() noexcept {
  Chain all;
  while (Fiber* fiber = pop()) all.append(*fiber);
  return all;
}

std::size_t LocalQueue::steal_overflow(LocalQueue& victim, bool unstarted_first) noexcept {
  if (unstarted_first) {
    if (Fiber* chain = victim.unstarted_.take_oldest()) {
      adopt(chain);
      return RunQueue::kCapacity / 2;
    }
  }
  const std::size_t taken = steal_oldest(victim, (victim.waiting_.size_hint() + 1) / 2);
  if (taken != 0 || unstarted_first) return taken;
  return steal_overflow(victim, true);
}

std::size_t LocalQueue::steal_chain(LocalQueue& victim) noexcept {
  WEFT_INVARIANT(victim.is_open(), "LocalQueue I4: thieves come to open queues only");
  Fiber* chain = victim.unstarted_.take_oldest();
  if (chain == nullptr) return 0;
  if (!unstarted_.try_push_oldest(*chain)) adopt(chain);
  return RunQueue::kCapacity / 2;
}

std::size_t LocalQueue::steal_oldest(LocalQueue& victim, std::size_t most) noexcept {
  WEFT_INVARIANT(victim.is_open(), "LocalQueue I4: thieves come to open queues only");
  Chain stolen;
  while (stolen.count < most) {
    const Chain some = victim.waiting_.take(most - stolen.count);
    if (some.is_empty()) break;
    stolen.append(some);
  }
  // Prefetches the stacks of fibers that fit into the ring; refill() prefetches the others.
  std::uint32_t soon = waiting_.size_hint() == 0 ? RunQueue::kCapacity : 0;
  for (Fiber* fiber = stolen.first; fiber != nullptr && soon > 0; fiber = fiber->next, --soon) {
    fibers::prefetch(fiber->stack.load(relaxed));
  }
  take_over(stolen);
  return stolen.count;
}

std::size_t LocalQueue::steal_ring(LocalQueue& victim, std::size_t most) noexcept {
  WEFT_INVARIANT(victim.is_open(), "LocalQueue I4: thieves come to open queues only");
  WEFT_INVARIANT(victim.ring_.is_shared(), "RunQueue I5: the ring of an open queue stays shared");
  RunQueue::Batch batch;
  const std::uint32_t count = victim.ring_.take_half(batch, most);
  Chain stolen;
  for (std::uint32_t i = 0; i < count; ++i) stolen.append(*batch[i]);
  if (ring_.size_hint() == 0 || waiting_.size_hint() != 0) {
    take_over(stolen);
  } else {
    // If the stolen fibers entered this ring at its end, they would wait a second time.
    waiting_.merge(stolen, time_);
    overtakers_ += count;
  }
  return count;
}

std::size_t LocalQueue::steal_next(LocalQueue& victim) noexcept {
  WEFT_INVARIANT(victim.is_open(), "LocalQueue I4: thieves come to open queues only");
  Fiber* fiber = victim.next_.exchange(nullptr, acquire);  // [next]
  if (fiber == nullptr) return 0;
  push_last(*fiber);
  return 1;
}

std::size_t LocalQueue::relieve(LocalQueue& victim, std::size_t most) noexcept {
  std::size_t taken = steal_oldest(victim, most);
  if (taken == 0) taken = steal_chain(victim);
  return taken != 0 ? taken : steal_ring(victim, most);
}

bool LocalQueue::try_open() noexcept {
  if (is_open()) return true;
  ring_.share();                                                            // [inside]
  if (!base::barrier_all_threads() || inside_.load(acquire)) return false;  // [inside]
  open_.store(true, release);                                               // [open]
  return true;
}

}  // namespace weft::scheduler

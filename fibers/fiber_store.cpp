#include "fibers/fiber_store.hpp"

#include <algorithm>
#include <new>

#include "fibers/sanitizer.hpp"

namespace weft::fibers {

void FiberStore::open_slab() {
  if (empty_slabs_.empty()) reserve_slabs();
  // The address may have belonged to a stack of an earlier runtime.
  SanitizerStack::unpoison(empty_slabs_.back(), kSlabBytes);
  open_ = ::new (static_cast<void*>(empty_slabs_.back())) Slab;
  empty_slabs_.pop_back();
  open_->owner = owner_;
  open_->position = slabs_.size();
  for (std::size_t i = 0; i < Slab::kFibers; ++i) {
    ::new (static_cast<void*>(open_->fibers() + i)) Fiber;
  }
  slabs_.push_back(open_);
  carved_ = 0;
}

// Takes all remaining records of the open slab if these are fewer than a chain. A chain never spans
// two slabs.
Fiber* FiberStore::carve_chain() {
  if (carved_ == Slab::kFibers) open_slab();
  const std::size_t end = std::min<std::size_t>(carved_ + kFibersPerChain, Slab::kFibers);
  Fiber* fibers = open_->fibers();
  Fiber* chain = nullptr;
  for (std::size_t i = end; i-- > carved_;) {
    fibers[i].next = chain;
    chain = &fibers[i];
  }
  carved_ = end;
  return chain;
}

Fiber* FiberStore::take_chain() {
  // Relaxed: a hint, because a spawn cannot predict whether a stack will be available.
  for (const detail::Atomic<std::size_t>* count : refusing_) {
    if (count != nullptr && count->load(detail::relaxed) != 0) return nullptr;
  }
  if (Fiber* chain = depot_.take()) return chain;
  const detail::Guard lock(mutex_);
  if (!sorted_.empty()) return take_sorted_chain();
  const std::size_t handed_out = slabs_.size() * Slab::kFibers + carved_ - Slab::kFibers;
  if (handed_out >= max_fibers_ + kSpareFibers) return nullptr;
  const bool is_full = carved_ == Slab::kFibers;
  if (is_full && may_grow_ != nullptr && !may_grow_(context_, slabs_.size() * kSlabBytes)) {
    return nullptr;
  }
  return carve_chain();
}

void FiberStore::give_chain(Fiber* chain) noexcept {
  // If the entry has no memory, the chain is lost until the runtime ends, which is a bounded leak.
  (void)!depot_.give(chain);
}

Fiber* FiberStore::take_sorted_chain() noexcept {
  Slab& slab = *sorted_.back();
  Fiber* chain = nullptr;
  for (std::uint32_t i = 0; i < kFibersPerChain && slab.sorted_count > 0; ++i) {
    Fiber* fiber = slab.sorted;
    slab.sorted = fiber->next;
    --slab.sorted_count;
    fiber->next = chain;
    chain = fiber;
  }
  if (slab.sorted_count == 0) sorted_.pop_back();
  return chain;
}

Fiber* FiberCache::refill_and_take() {
  Fiber* chain = store_.take_chain();
  if (chain == nullptr) return nullptr;
  magazine_.refill(chain, base::chain_length(chain));
  return magazine_.take();
}

}  // namespace weft::fibers

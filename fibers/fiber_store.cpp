#include "fibers/fiber_store.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "fibers/sanitizer.hpp"

namespace weft::fibers {

namespace {

// Slabs are cut from larger reservations: one mapping each would use up the kernel's mappings.
constexpr std::size_t kReservationBytes = std::size_t{2} << 20;
constexpr std::size_t kReservationSlabs = kReservationBytes / kSlabBytes;

}  // namespace

FiberStore::FiberStore(void* owner, std::size_t max_fibers)
    : owner_(owner), max_fibers_(std::max<std::size_t>(max_fibers, kFibersPerChain)) {}

FiberStore::~FiberStore() {
  for (Slab* slab : slabs_) delete[] slab->parked_since;
  for (void* reservation : reservations_) munmap(reservation, kReservationBytes);
}

void FiberStore::reserve_slabs() {
  const std::size_t total = (reservations_.size() + 1) * kReservationSlabs;
  if (slabs_.capacity() < total) slabs_.reserve(total * 2);
  if (sorted_.capacity() < total) sorted_.reserve(total * 2);
  if (empty_slabs_.capacity() < total) empty_slabs_.reserve(total * 2);
  reservations_.reserve(reservations_.size() + 1);
  void* start = mmap(nullptr, 2 * kReservationBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) throw std::bad_alloc();
  // Cuts the mapping to one reservation that is aligned to its size.
  auto* first = static_cast<char*>(start);
  auto* aligned = reinterpret_cast<char*>(
      (reinterpret_cast<std::uintptr_t>(first) + kReservationBytes - 1) & ~(kReservationBytes - 1));
  if (aligned != first) munmap(first, static_cast<std::size_t>(aligned - first));
  const auto tail = static_cast<std::size_t>(first + kReservationBytes - aligned);
  if (tail > 0) munmap(aligned + kReservationBytes, tail);
  // A program with more than thirty thousand fibers saves 512 page faults for each reservation; a
  // small program keeps small pages.
  if (!reservations_.empty()) (void)madvise(aligned, kReservationBytes, MADV_HUGEPAGE);
  reservations_.push_back(aligned);
  for (std::size_t i = kReservationSlabs; i-- > 0;) {
    empty_slabs_.push_back(reinterpret_cast<Slab*>(aligned + i * kSlabBytes));
  }
}

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

// Takes the rest of the open slab if it is shorter than a chain: a chain never spans two slabs.
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
  // Relaxed: a hint, because a spawn cannot tell whether there will be a stack.
  for (const detail::Atomic<std::size_t>* count : refusing_) {
    if (count != nullptr && count->load(detail::relaxed) != 0) return nullptr;
  }
  if (Fiber* chain = depot_.take()) return chain;
  const detail::Guard lock(mutex_);
  if (!sorted_.empty()) return take_sorted_chain();
  const std::size_t handed_out = slabs_.size() * Slab::kFibers + carved_ - Slab::kFibers;
  if (handed_out >= max_fibers_ + kSpareFibers) return nullptr;
  const bool is_full = carved_ == Slab::kFibers;
  if (is_full && may_grow_ != nullptr && !may_grow_(context_)) return nullptr;
  return carve_chain();
}

void FiberStore::give_chain(Fiber* chain) noexcept {
  // Without memory for the entry the chain is lost until the runtime ends: a bounded leak.
  (void)!depot_.give(chain);
}

bool FiberStore::trim(unsigned chains) {
  const detail::Guard lock(mutex_);
  for (; chains > 0; --chains) {
    if (!has_surplus_hint()) return false;
    Fiber* chain = depot_.take();
    while (chain != nullptr) {
      Fiber* following = chain->next;
      sort(*chain);
      chain = following;
    }
  }
  return has_surplus_hint();
}

bool FiberStore::decay(unsigned chains) {
  if (due_ <= 0) return false;
  const auto now = static_cast<unsigned>(std::min<std::int64_t>(chains, due_));
  due_ -= now;
  if (!trim(now)) due_ = 0;
  return due_ > 0;
}

void FiberStore::sort(Fiber& fiber) noexcept {
  Slab& slab = Slab::of(fiber);
  if (slab.sorted_count == 0) {
    slab.sorted_position = sorted_.size();
    sorted_.push_back(&slab);  // There is room for all slabs: see reserve_slabs().
  }
  fiber.next = slab.sorted;
  slab.sorted = &fiber;
  if (++slab.sorted_count == Slab::kFibers && &slab != open_) retire(slab);
}

void FiberStore::retire(Slab& slab) noexcept {
  sorted_.back()->sorted_position = slab.sorted_position;
  sorted_[slab.sorted_position] = sorted_.back();
  sorted_.pop_back();
  slabs_.back()->position = slab.position;
  slabs_[slab.position] = slabs_.back();
  slabs_.pop_back();
  delete[] slab.parked_since;
  (void)madvise(&slab, kSlabBytes, MADV_DONTNEED);
  empty_slabs_.push_back(&slab);
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

std::size_t FiberStore::bytes() noexcept {
  const detail::Guard lock(mutex_);
  return slabs_.size() * kSlabBytes;
}

Fiber* FiberCache::refill_and_take() {
  Fiber* chain = store_.take_chain();
  if (chain == nullptr) return nullptr;
  magazine_.refill(chain, base::chain_length(chain));
  return magazine_.take();
}

}  // namespace weft::fibers

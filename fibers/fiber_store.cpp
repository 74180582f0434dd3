#include "fibers/fiber_store.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <unordered_map>

namespace weft::fibers {

namespace {

// Slabs are cut from larger reservations: one mapping each would use up the kernel's mappings.
constexpr std::size_t kReservationBytes = std::size_t{2} << 20;
constexpr std::size_t kReservationSlabs = kReservationBytes / kSlabBytes;

}  // namespace

FiberStore::FiberStore(void* owner, std::size_t max_fibers) noexcept
    : owner_(owner), max_fibers_(std::max<std::size_t>(max_fibers, kFibersPerChain)) {}

FiberStore::~FiberStore() {
  for (void* reservation : reservations_) munmap(reservation, kReservationBytes);
}

void FiberStore::reserve_slabs() {
  const std::size_t total = (reservations_.size() + 1) * kReservationSlabs;
  if (slabs_.capacity() < total) slabs_.reserve(total * 2);
  if (empty_slabs_.capacity() < total) empty_slabs_.reserve(total * 2);
  reservations_.reserve(reservations_.size() + 1);
  void* start = mmap(nullptr, 2 * kReservationBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) throw std::bad_alloc();
  // Cut to one reservation that is aligned to its size.
  auto* first = static_cast<char*>(start);
  auto* aligned = reinterpret_cast<char*>(
      (reinterpret_cast<std::uintptr_t>(first) + kReservationBytes - 1) & ~(kReservationBytes - 1));
  if (aligned != first) munmap(first, static_cast<std::size_t>(aligned - first));
  const auto tail = static_cast<std::size_t>(first + kReservationBytes - aligned);
  if (tail > 0) munmap(aligned + kReservationBytes, tail);
  // A program with more than twenty thousand fibers is spared 512 page faults per reservation; a
  // small program keeps to small pages.
  if (!reservations_.empty()) (void)madvise(aligned, kReservationBytes, MADV_HUGEPAGE);
  reservations_.push_back(aligned);
  for (std::size_t i = kReservationSlabs; i-- > 0;) {
    empty_slabs_.push_back(reinterpret_cast<Slab*>(aligned + i * kSlabBytes));
  }
}

void FiberStore::open_slab() {
  if (empty_slabs_.empty()) reserve_slabs();
  Slab* slab = empty_slabs_.back();
  empty_slabs_.pop_back();
  slab->owner = owner_;
  for (std::size_t i = 0; i < Slab::kFibers; ++i) {
    ::new (static_cast<void*>(slab->fibers() + i)) Fiber;
  }
  slabs_.push_back(slab);
  carved_ = 0;
}

// The rest of the open slab, if it is short of a chain: a chain never spans two slabs.
Fiber* FiberStore::carve_chain() {
  if (carved_ == Slab::kFibers) open_slab();
  const std::size_t end = std::min<std::size_t>(carved_ + kFibersPerChain, Slab::kFibers);
  Fiber* fibers = slabs_.back()->fibers();
  Fiber* chain = nullptr;
  for (std::size_t i = end; i-- > carved_;) {
    fibers[i].next = chain;
    chain = &fibers[i];
  }
  carved_ = end;
  return chain;
}

Fiber* FiberStore::take_chain() {
  if (Fiber* chain = depot_.take()) return chain;
  const std::lock_guard lock(mutex_);
  const std::size_t handed_out = slabs_.size() * Slab::kFibers + carved_ - Slab::kFibers;
  if (handed_out + kFibersPerChain > max_fibers_ + Slab::kFibers) return nullptr;
  return carve_chain();
}

void FiberStore::give_chain(Fiber* chain) noexcept {
  // Without memory for the entry the chain is lost until the runtime ends: a bounded leak, no harm.
  (void)!depot_.give(chain);
}

void FiberStore::trim() {
  std::vector<Fiber*> free;
  while (Fiber* chain = depot_.take()) {
    for (; chain != nullptr; chain = chain->next) free.push_back(chain);
  }
  const std::lock_guard lock(mutex_);
  std::unordered_map<Slab*, std::size_t> free_in;
  for (Fiber* fiber : free) ++free_in[&Slab::of(*fiber)];
  // The slab at the back is still being carved.
  const auto is_unused = [&](Slab* slab) {
    const auto found = free_in.find(slab);
    return slab != slabs_.back() && found != free_in.end() && found->second == Slab::kFibers;
  };
  base::Magazine<Fiber> chains(kFibersPerChain);
  for (Fiber* fiber : free) {
    if (is_unused(&Slab::of(*fiber))) continue;
    if (Fiber* full = chains.give(*fiber)) give_chain(full);
  }
  chains.drain([this](Fiber* chain) { give_chain(chain); });
  for (Slab*& slab : slabs_) {
    if (!is_unused(slab)) continue;
    (void)madvise(slab, kSlabBytes, MADV_DONTNEED);
    empty_slabs_.push_back(slab);
    slab = nullptr;
  }
  std::erase(slabs_, nullptr);
}

std::size_t FiberStore::bytes() noexcept {
  const std::lock_guard lock(mutex_);
  return slabs_.size() * kSlabBytes;
}

Fiber* FiberCache::refill_and_take() {
  Fiber* chain = store_.take_chain();
  if (chain == nullptr) return nullptr;
  magazine_.refill(chain, base::chain_length(chain));
  return magazine_.take();
}

}  // namespace weft::fibers

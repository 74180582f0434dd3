// Allocates and frees the memory of records. Compiled for size, because no hot path uses this file.
#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "fibers/fiber_store.hpp"

namespace weft::fibers {

namespace {

// Slabs are cut from larger reservations, because one mapping for each slab could exhaust the
// kernel's limit.
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
  // Cuts the mapping down to one reservation that is aligned to its size.
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
    sorted_.push_back(&slab);  // reserve_slabs() has made room for all slabs.
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

std::size_t FiberStore::bytes() noexcept {
  const detail::Guard lock(mutex_);
  return slabs_.size() * kSlabBytes;
}

}  // namespace weft::fibers

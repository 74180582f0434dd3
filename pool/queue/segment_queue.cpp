#include "pool/queue/segment_queue.hpp"

#include <algorithm>
#include <new>
#include <utility>
#include <weft/detail/invariant.hpp>

namespace weft::pool {

using detail::PoolItem;

static_assert(alignof(PoolItem) <= alignof(std::max_align_t));

void SegmentQueue::Free::operator()(Segment* chain) const noexcept {
  while (chain != nullptr) {
    Segment* next = chain->next;
    ::operator delete(static_cast<void*>(chain));
    chain = next;
  }
}

std::size_t SegmentQueue::count(bool (*holds)(const PoolItem&) noexcept) noexcept {
  std::size_t number = 0;
  for (Segment* ring = first_; ring != nullptr; ring = ring->next) {
    for (std::size_t i = 0; i < ring->count; ++i) {
      if (holds(*std::launder(ring->place(ring->head + i)))) ++number;
    }
  }
  return number;
}

void SegmentQueue::swap(SegmentQueue& other) noexcept {
  std::swap(first_, other.first_);
  std::swap(last_, other.last_);
  std::swap(drained_, other.drained_);
  std::swap(size_, other.size_);
}

SegmentQueue::~SegmentQueue() {
  while (size_ > 0) {
    PoolItem dropped;
    pop(dropped);
  }
  const Segments rest(first_);
  const Segments drained(drained_);
}

bool SegmentQueue::each_pop_makes_room() const noexcept {
  if (last_ == nullptr) return false;
  // The items in older rings are popped first. Because these pops free no element of the last ring,
  // it must already have room for as many new items.
  const std::size_t in_older_rings = size_ - last_->count;
  return last_->size() - last_->count >= in_older_rings;
}

void SegmentQueue::drained_first() noexcept {
  Segment& ring = *first_;
  WEFT_INVARIANT(ring.count == 0, "SegmentQueue I2: a ring that is put aside is drained");
  WEFT_INVARIANT(ring.next != nullptr || size_ == 0, "SegmentQueue I1: the last ring has the rest");
  ring.head = 0;  // Reuses recently used elements, which are in the cache.
  if (ring.next == nullptr) return;
  first_ = ring.next;
  ring.next = std::exchange(drained_, &ring);
}

std::size_t SegmentQueue::next_segment_size() const noexcept {
  return last_ == nullptr ? first_size_ : 2 * last_->size();
}

SegmentQueue::Segments SegmentQueue::make_segment(std::size_t size) noexcept {
  void* memory = ::operator new(sizeof(Segment) + size * sizeof(PoolItem), std::nothrow);
  if (memory == nullptr) return nullptr;
  auto* segment = ::new (memory) Segment;
  segment->mask = size - 1;
  return Segments(segment);
}

SegmentQueue::Segments SegmentQueue::add(Segments segment) noexcept {
  if (segment->size() != next_segment_size()) return segment;
  if (has_room() && each_pop_makes_room()) return segment;
  Segment* added = segment.release();
  if (size_ == 0) {
    // Preserves I1: only the last ring may be empty.
    if (first_ != nullptr) first_->next = std::exchange(drained_, first_);
    first_ = nullptr;
  }
  (first_ == nullptr ? first_ : last_->next) = added;
  last_ = added;
  return Segments(std::exchange(drained_, nullptr));
}

SegmentQueue::Segments SegmentQueue::trim() noexcept {
  if (size_ == 0 && first_ != nullptr && first_->size() > std::max(kKeptSize, first_size_)) {
    first_->next = std::exchange(drained_, first_);
    first_ = nullptr;
    last_ = nullptr;
  }
  return Segments(std::exchange(drained_, nullptr));
}

}  // namespace weft::pool

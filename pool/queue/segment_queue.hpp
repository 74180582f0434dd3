// The queue of a pool's plain tasks that have not started.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <weft/detail/invariant.hpp>
#include <weft/pool.hpp>

namespace weft::pool {

// A FIFO that grows without moving its items, and without an allocation under its owner's lock. The
// owner allocates each new ring outside the lock, and adds it to the queue under the lock.
//
// The queue is a chain of rings. The owner pushes items to the last ring and pops them from the
// first ring. When the last ring is full, the owner adds a ring of twice its size. An empty ring is
// removed unless it is the last one, so under a steady load the queue has only one ring. The
// owner's lock guards the queue.
// Invariants
//   I1  size_ is the sum of the counts of all rings, and only the last ring may be empty.
//   I2  A drained ring that is not the last ring stays in drained_ until add() or trim() returns
//       it; the caller then frees it outside the lock.
class SegmentQueue {
 public:
  // A ring of `mask + 1` elements, which are stored after the header.
  struct Segment {
    Segment* next = nullptr;
    std::size_t mask = 0;
    std::size_t head = 0;
    std::size_t count = 0;

    [[nodiscard]] std::size_t size() const noexcept { return mask + 1; }
    [[nodiscard]] detail::PoolItem* place(std::size_t index) noexcept {
      return reinterpret_cast<detail::PoolItem*>(this + 1) + (index & mask);
    }
  };
  struct Free {
    void operator()(Segment* chain) const noexcept;
  };
  // Owns a chain of empty segments.
  using Segments = std::unique_ptr<Segment, Free>;

  SegmentQueue() noexcept = default;
  SegmentQueue(const SegmentQueue&) = delete;
  SegmentQueue& operator=(const SegmentQueue&) = delete;
  // Drops the remaining items.
  ~SegmentQueue();

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  // popped() and pushed() return how many items have been removed and added so far.
  [[nodiscard]] std::uint64_t popped() const noexcept { return popped_; }
  [[nodiscard]] std::uint64_t pushed() const noexcept { return popped_ + size_; }
  // Returns whether push() is possible now.
  [[nodiscard]] bool has_room() const noexcept {
    return last_ != nullptr && last_->count <= last_->mask;
  }
  // Returns whether each later pop() makes room for one push(), so that no other ring is needed.
  [[nodiscard]] bool each_pop_makes_room() const noexcept;

  // Requires that has_room() returns true.
  void push(detail::PoolItem&& item) noexcept {
    Segment& ring = *last_;
    ::new (static_cast<void*>(ring.place(ring.head + ring.count)))
        detail::PoolItem(std::move(item));
    ++ring.count;
    ++size_;
    WEFT_INVARIANT(ring.count <= ring.size() && ring.count <= size_ && first_->count > 0,
                   "SegmentQueue I1: size_ counts each ring, and only the last may be empty");
  }
  // Moves the oldest item into `item`, which must be empty. Requires that the queue is not empty.
  void pop(detail::PoolItem& item) noexcept {
    Segment& ring = *first_;
    // Neither the moved-from element nor the empty `item` needs a destructor call.
    ::new (static_cast<void*>(&item))
        detail::PoolItem(std::move(*std::launder(ring.place(ring.head))));
    ++ring.head;
    --ring.count;
    --size_;
    ++popped_;
    if (ring.count == 0) drained_first();
  }

  // Returns the number of items for which `holds` returns true.
  [[nodiscard]] std::size_t count(bool (*holds)(const detail::PoolItem&) noexcept) noexcept;
  void swap(SegmentQueue& other) noexcept;

  // Sets the size of the queue's first ring, so that it has room for `items`. If the queue later
  // frees all its rings, the next ring has this size again.
  void begin_with(std::size_t items) noexcept { first_size_ = std::bit_ceil(items); }
  // Returns the capacity of the next segment.
  [[nodiscard]] std::size_t next_segment_size() const noexcept;
  // Returns null if no memory is available.
  [[nodiscard]] static Segments make_segment(std::size_t size) noexcept;
  // Adds `segment`, unless the queue no longer needs it. Returns unneeded segments, which the
  // caller must free outside the lock.
  [[nodiscard]] Segments add(Segments segment) noexcept;
  // Removes the drained rings. If the queue is empty, also removes the last ring if that ring is
  // larger than kKeptSize and first_size_. The caller must free the returned memory outside the
  // lock.
  [[nodiscard]] Segments trim() noexcept;

 private:
  static constexpr std::size_t kFirstSize = 16;  // One kilobyte, which malloc allocates quickly.
  static constexpr std::size_t kKeptSize = 1024;

  void drained_first() noexcept;

  // The fields that change with each task come first, close to the fields of the owner that also
  // change with each task.
  std::size_t size_ = 0;
  std::uint64_t popped_ = 0;
  Segment* last_ = nullptr;
  Segment* first_ = nullptr;
  Segment* drained_ = nullptr;
  std::size_t first_size_ = kFirstSize;
};

}  // namespace weft::pool

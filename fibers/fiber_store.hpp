// The store that provides the records of fibers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>
#include <weft/detail/thread_mutex.hpp>

#include "base/lock_until.hpp"
#include "base/magazine.hpp"
#include "fibers/depot.hpp"
#include "fibers/fiber.hpp"

namespace weft::fibers {

inline constexpr std::size_t kSlabBytes = std::size_t{64} << 10;
inline constexpr std::uint32_t kFibersPerChain = 256;
// The store has this many records beyond the limit, because workers may cache unused records.
inline constexpr std::uint32_t kSpareFibers = 2 * kFibersPerChain;

// A slab is aligned to its size, so that a record's address gives its slab, and the slab gives the
// owner. The store's mutex guards all fields except `owner`.
struct Slab {
  void* owner = nullptr;     // The scheduler that owns the fibers.
  std::size_t position = 0;  // The position among the slabs in use.
  std::size_t sorted_position = 0;
  Fiber* sorted = nullptr;  // Free records of this slab, sorted by trim(), through `next`.
  std::size_t sorted_count = 0;
  // For each record whose fiber has Fiber::kCounted: when a census first saw it parked, in tenths
  // of a second of the steady clock. Null before the first census.
  std::uint32_t* parked_since = nullptr;

  [[nodiscard]] static Slab& of(const Fiber& fiber) noexcept {
    return *reinterpret_cast<Slab*>(reinterpret_cast<std::uintptr_t>(&fiber) & ~(kSlabBytes - 1));
  }
  [[nodiscard]] Fiber* fibers() noexcept {
    return reinterpret_cast<Fiber*>(reinterpret_cast<char*>(this) + kHeaderBytes);
  }
  // Returns the fiber's index in `parked_since`.
  [[nodiscard]] std::size_t place_of(const Fiber& fiber) noexcept {
    return static_cast<std::size_t>(&fiber - fibers());
  }
  static constexpr std::size_t kHeaderBytes = 64;
  static constexpr std::size_t kFibers = (kSlabBytes - kHeaderBytes) / sizeof(Fiber);
};
static_assert(sizeof(Slab) <= Slab::kHeaderBytes);

// Contains all records of one runtime. The store is also the registry of fibers: every record has a
// state, so a dump walks the slabs, and a spawn registers nothing. Any thread may call the
// functions; a mutex guards the slabs, and the lock-free depot holds the free chains.
class FiberStore {
 public:
  // Throws std::bad_alloc.
  FiberStore(void* owner, std::size_t max_fibers);
  ~FiberStore();
  FiberStore(const FiberStore&) = delete;
  FiberStore& operator=(const FiberStore&) = delete;

  // Returns one to kFibersPerChain records, linked through `next`; null at the limit,
  // or while the store refuses records. Throws std::bad_alloc if the system refuses memory.
  [[nodiscard]] Fiber* take_chain();
  void give_chain(Fiber* chain) noexcept;

  // Sorts the records of up to `chains` free chains by slab, and gives back the memory of slabs in
  // which every record is free. Returns true if more are left to sort.
  bool trim(unsigned chains);
  // Does the same as StackDepot::decay().
  void begin_decay_period() noexcept { due_ = depot_.begin_period() - kChainsKept; }
  bool decay(unsigned chains);
  [[nodiscard]] std::int64_t due() const noexcept { return due_; }
  [[nodiscard]] bool has_surplus_hint() const noexcept { return depot_.count_hint() > kChainsKept; }

  // Makes take_chain() return null while the count is not 0. Call this at most twice, and before
  // the store is used.
  void refuse_while_any(const detail::Atomic<std::size_t>& count) noexcept {
    (refusing_[0] == nullptr ? refusing_[0] : refusing_[1]) = &count;
  }

  // Makes take_chain() return null if it needs a new slab and `may_grow(context, bytes)`, where
  // `bytes` is the present size of all records, returns false. may_grow must not use the store.
  // Call this before the store is used.
  using MayGrow = bool (*)(void* context, std::size_t bytes) noexcept;
  void ask_before_growth(MayGrow may_grow, void* context) noexcept {
    may_grow_ = may_grow;
    context_ = context;
  }

  [[nodiscard]] std::size_t max_fibers() const noexcept { return max_fibers_; }
  [[nodiscard]] std::size_t bytes() noexcept;

  // Calls visit(const Fiber&) for every record, including free records, until it returns false. The
  // records may be stale. Returns false, without a call of `visit`, if `patience` ended before the
  // mutex was free.
  template <class Visit>
  [[nodiscard]] bool for_each_until(Deadline patience, Visit visit) {
    return hold_until(patience, [&](auto for_each) { for_each(visit); });
  }
  // Calls use(for_each). `use` may call for_each(visit), which works like for_each_until(), any
  // number of times under one lock. Meanwhile no census marks a fiber.
  template <class Use>
  [[nodiscard]] bool hold_until(Deadline patience, Use use) WEFT_NOT_ANALYZED {
    // Excluded from thread-safety analysis: see lock_until().
    const std::unique_lock lock = base::lock_until(mutex_, patience);
    if (!lock) return false;
    use([this](auto visit) WEFT_NOT_ANALYZED {
      for (Slab* slab : slabs_) {
        for (std::size_t i = 0; i < Slab::kFibers; ++i) {
          if (!visit(slab->fibers()[i])) return;
        }
      }
    });
    return true;
  }

  // Calls visit(Fiber&) for the records of the slabs from `first` up to, but without, `last`, in
  // their present order. Returns the number of slabs, or nothing if another thread holds the mutex.
  template <class Visit>
  [[nodiscard]] std::optional<std::size_t> for_each_of_slabs(std::size_t first, std::size_t last,
                                                             Visit visit) WEFT_NOT_ANALYZED {
    // Excluded from thread-safety analysis: see lock_until().
    const std::unique_lock lock = base::lock_until(mutex_, Deadline::at_nanoseconds(0));
    if (!lock) return std::nullopt;
    for (std::size_t i = first; i < slabs_.size() && i < last; ++i) {
      for (std::size_t j = 0; j < Slab::kFibers; ++j) visit(slabs_[i]->fibers()[j]);
    }
    return slabs_.size();
  }

 private:
  // The number of free chains that decay() never frees: 0.3 MB of records.
  static constexpr std::int64_t kChainsKept = 16;

  void reserve_slabs() WEFT_REQUIRES(mutex_);
  void open_slab() WEFT_REQUIRES(mutex_);
  [[nodiscard]] Fiber* carve_chain() WEFT_REQUIRES(mutex_);
  [[nodiscard]] Fiber* take_sorted_chain() noexcept WEFT_REQUIRES(mutex_);
  void sort(Fiber& fiber) noexcept WEFT_REQUIRES(mutex_);
  void retire(Slab& slab) noexcept WEFT_REQUIRES(mutex_);

  void* const owner_;
  const std::size_t max_fibers_;
  // A null entry is unused.
  std::array<const detail::Atomic<std::size_t>*, 2> refusing_{};
  MayGrow may_grow_ = nullptr;  // Null: may always grow.
  void* context_ = nullptr;
  Depot<Fiber> depot_;
  std::int64_t due_ = 0;  // Chains to give back in this period. The thread that decays owns it.
  detail::ThreadMutex mutex_;
  std::vector<Slab*> slabs_ WEFT_GUARDED_BY(mutex_);   // Slabs in use.
  std::vector<Slab*> sorted_ WEFT_GUARDED_BY(mutex_);  // Slabs in use that hold sorted records.
  Slab* open_ WEFT_GUARDED_BY(mutex_) = nullptr;       // Records are carved from it.
  // Memory given back or not yet used; the store uses it before it reserves more.
  std::vector<Slab*> empty_slabs_ WEFT_GUARDED_BY(mutex_);
  std::vector<void*> reservations_ WEFT_GUARDED_BY(mutex_);
  // The number of records that have been taken from open_.
  std::size_t carved_ WEFT_GUARDED_BY(mutex_) = Slab::kFibers;
};

// Caches the free records of one worker.
class FiberCache {
 public:
  explicit FiberCache(FiberStore& store) noexcept : store_(store), magazine_(kFibersPerChain) {}
  ~FiberCache() { empty(); }
  FiberCache(const FiberCache&) = delete;
  FiberCache& operator=(const FiberCache&) = delete;

  // Takes a record; returns null at the limit. Throws what FiberStore::take_chain() throws.
  [[nodiscard]] Fiber* take() {
    if (Fiber* fiber = magazine_.take()) [[likely]]
      return fiber;
    return refill_and_take();
  }
  void give(Fiber& fiber) noexcept {
    if (Fiber* surplus = magazine_.give(fiber)) store_.give_chain(surplus);
  }
  // Returns the records to the store.
  void empty() noexcept {
    magazine_.drain([this](Fiber* chain) { store_.give_chain(chain); });
  }

 private:
  [[nodiscard]] Fiber* refill_and_take();

  FiberStore& store_;
  base::Magazine<Fiber> magazine_;
};

}  // namespace weft::fibers

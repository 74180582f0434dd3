// Where fiber records come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/magazine.hpp"
#include "fibers/depot.hpp"
#include "fibers/fiber.hpp"

namespace weft::fibers {

inline constexpr std::size_t kSlabBytes = std::size_t{64} << 10;
inline constexpr std::uint32_t kFibersPerChain = 256;

// Aligned to its size, so that a record's address leads to its slab, and that to its owner.
struct Slab {
  void* owner;  // The scheduler whose fibers these are.

  [[nodiscard]] static Slab& of(const Fiber& fiber) noexcept {
    return *reinterpret_cast<Slab*>(reinterpret_cast<std::uintptr_t>(&fiber) & ~(kSlabBytes - 1));
  }
  [[nodiscard]] Fiber* fibers() noexcept {
    return reinterpret_cast<Fiber*>(reinterpret_cast<char*>(this) + 64);
  }
  static constexpr std::size_t kFibers = (kSlabBytes - 64) / sizeof(Fiber);
};

// All records of one runtime. It is also the registry of fibers: every record says in what state
// it is, so a dump walks the slabs, and a spawn registers nothing.
// Any thread may call; a mutex guards the slabs, the lock-free depot the free chains.
class FiberStore {
 public:
  FiberStore(void* owner, std::size_t max_fibers) noexcept;
  ~FiberStore();
  FiberStore(const FiberStore&) = delete;
  FiberStore& operator=(const FiberStore&) = delete;

  // kFibersPerChain records, or a few less, linked through `next`; null at the limit.
  // Throws std::bad_alloc when the system refuses memory.
  [[nodiscard]] Fiber* take_chain();
  void give_chain(Fiber* chain) noexcept;

  // Gives the memory of slabs in which every record is free and in the depot back.
  void trim();

  [[nodiscard]] std::size_t max_fibers() const noexcept { return max_fibers_; }
  [[nodiscard]] std::size_t bytes() noexcept;

  // Calls visit(const Fiber&) for every record, free ones too. What it sees may be stale.
  template <class Visit>
  void for_each(Visit visit) {
    const std::lock_guard lock(mutex_);
    for (Slab* slab : slabs_) {
      for (std::size_t i = 0; i < Slab::kFibers; ++i) visit(slab->fibers()[i]);
    }
  }

 private:
  void reserve_slabs();
  void open_slab();
  [[nodiscard]] Fiber* carve_chain();

  void* const owner_;
  const std::size_t max_fibers_;
  Depot<Fiber> depot_;
  std::mutex mutex_;
  std::vector<Slab*> slabs_;        // Those in use, in the order of their making.
  std::vector<Slab*> empty_slabs_;  // Memory given back; used again before new ones are made.
  std::vector<void*> reservations_;
  std::size_t carved_ = Slab::kFibers;  // Records handed out of slabs_.back().
};

// The free records of one worker.
class FiberCache {
 public:
  explicit FiberCache(FiberStore& store) noexcept : store_(store), magazine_(kFibersPerChain) {}
  ~FiberCache() {
    magazine_.drain([this](Fiber* chain) { store_.give_chain(chain); });
  }
  FiberCache(const FiberCache&) = delete;
  FiberCache& operator=(const FiberCache&) = delete;

  // Null at the limit; throws as FiberStore::take_chain().
  [[nodiscard]] Fiber* take() {
    if (Fiber* fiber = magazine_.take()) [[likely]]
      return fiber;
    return refill_and_take();
  }
  void give(Fiber& fiber) noexcept {
    if (Fiber* surplus = magazine_.give(fiber)) store_.give_chain(surplus);
  }

 private:
  [[nodiscard]] Fiber* refill_and_take();

  FiberStore& store_;
  base::Magazine<Fiber> magazine_;
};

}  // namespace weft::fibers

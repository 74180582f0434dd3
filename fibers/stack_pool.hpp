// The free stacks of a worker.
#pragma once

#include <array>
#include <cstdint>

#include "base/magazine.hpp"
#include "fibers/depot.hpp"
#include "fibers/stack_space.hpp"

namespace weft::fibers {

// Chains of larger stacks are shorter, so that an idle worker does not keep many megabytes.
[[nodiscard]] constexpr std::uint32_t stacks_per_chain(unsigned size_class) noexcept {
  return size_class <= kDefaultSizeClass ? 32 : 4;
}

// Contains the free stacks that all workers share. Keeps their memory for a while, because bursts
// often follow each other; trim() gives the memory back.
class StackDepot {
 public:
  // Throws std::bad_alloc.
  explicit StackDepot(StackMain entry) : space_(entry) {}

  // Returns a chain of one size, from the warm stacks if possible, otherwise from the space; null
  // if no memory is available.
  [[nodiscard]] Stack* take_chain(unsigned size_class) noexcept;
  void give_chain(Stack* chain) noexcept;

  // Gives back the memory of up to `chains` warm chains. If no warm chain is left, excludes cold
  // stacks from core files, and gives page tables back. Returns true if more work is left.
  bool trim(unsigned chains) noexcept;
  [[nodiscard]] bool has_surplus_hint() const noexcept;
  // Does the same as trim(), in steps. A step gives back up to `chains` of the chains that were
  // unused in the whole last period. Every 20 periods, it also gives back page tables. Returns true
  // if more is due. One thread at a time may call it.
  void begin_decay_period() noexcept;
  bool decay(unsigned chains) noexcept;
  // Returns how many chains should be given back in this period.
  [[nodiscard]] std::int64_t due() const noexcept;

  [[nodiscard]] StackSpace& space() noexcept { return space_; }

 private:
  StackSpace space_;
  std::array<Depot<Stack>, kStackSizes> warm_;
  std::array<std::int64_t, kStackSizes> due_{};  // Chains to give back in this period.
  unsigned periods_ = 0;
  bool are_tables_due_ = false;
};

// Contains the free stacks of one worker. take() returns the last freed stack first, because it is
// still in the cache. Owner: the worker's thread.
class StackPool {
 public:
  explicit StackPool(StackDepot& depot) noexcept;
  ~StackPool() { empty(); }
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;

  // Returns null, without a system call, if this worker has no free stack of this size.
  [[nodiscard]] Stack* take_hot(unsigned size_class) noexcept {
    return magazines_[size_class].take();
  }
  // Takes a free stack, if necessary from the depot; returns null if the system refuses more
  // stacks.
  [[nodiscard]] Stack* take(unsigned size_class) noexcept;

  void give(Stack& stack) noexcept {
    if (Stack* surplus = magazines_[stack.size_class].give(stack)) depot_.give_chain(surplus);
  }
  // Returns the stacks to the depot.
  void empty() noexcept;

 private:
  StackDepot& depot_;
  std::array<base::Magazine<Stack>, kStackSizes> magazines_;
};

}  // namespace weft::fibers

// Chains of free objects, shared by all workers.
#pragma once

#include <boost/lockfree/stack.hpp>
#include <cstdint>
#include <new>
#include <weft/detail/atomic.hpp>

namespace weft::fibers {

// A lock-free LIFO of chains. One operation moves a whole chain (32 stacks or 256 records), so that
// many spawns access the shared cache lines only once.
template <class T>
class Depot {
 public:
  // Throws std::bad_alloc. Reserves the room for chains here, because the lock-free stack's
  // constructor would leak its allocations if it threw.
  Depot() { chains_.reserve(64); }

  // Adds a chain. Returns false if no memory is available; the caller then keeps the chain.
  [[nodiscard]] bool give(T* chain) noexcept {
    try {
      if (!chains_.push(chain)) return false;
    } catch (const std::bad_alloc&) {
      return false;
    }
    count_.fetch_add(1, detail::relaxed);
    return true;
  }
  [[nodiscard]] T* take() noexcept {
    T* chain = nullptr;
    if (!chains_.pop(chain)) {
      note_low(0);
      return nullptr;
    }
    note_low(count_.fetch_sub(1, detail::relaxed) - 1);
    return chain;
  }
  // Begins a period. Returns the lowest number of chains in the last period; that many chains were
  // unused for the whole period.
  std::int64_t begin_period() noexcept {
    const std::int64_t count = count_.load(detail::relaxed);
    const std::int64_t low = low_.load(detail::relaxed);
    low_.store(count, detail::relaxed);
    return low < count ? low : count;
  }
  [[nodiscard]] std::int64_t count_hint() const noexcept { return count_.load(detail::relaxed); }

 private:
  // If two threads store a number at once, the higher number may remain; then one more chain is
  // given back.
  void note_low(std::int64_t count) noexcept {
    if (count < low_.load(detail::relaxed)) low_.store(count, detail::relaxed);
  }

  boost::lockfree::stack<T*> chains_{0};
  // Relaxed: a hint for trim(); the lock-free stack itself publishes the chains.
  detail::Atomic<std::int64_t> count_{0};
  detail::Atomic<std::int64_t> low_{0};  // The lowest count_ in this period.
};

}  // namespace weft::fibers

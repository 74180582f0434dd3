// Chains of free objects, shared by all workers.
#pragma once

#include <boost/lockfree/stack.hpp>
#include <cstdint>
#include <new>
#include <weft/detail/atomic.hpp>

namespace weft::fibers {

// A lock-free LIFO of chains. One operation moves a whole chain (32 stacks, 256 records), so
// its shared cache lines are touched once in that many spawns at most.
template <class T>
class Depot {
 public:
  // Throws std::bad_alloc. Room for chains only now: what a constructor of the stack itself has
  // allocated when it throws is lost.
  Depot() { chains_.reserve(64); }

  // False when there is no memory for the entry: the chain is still the caller's.
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
    if (!chains_.pop(chain)) return nullptr;
    count_.fetch_sub(1, detail::relaxed);
    return chain;
  }
  [[nodiscard]] std::int64_t count_hint() const noexcept { return count_.load(detail::relaxed); }

 private:
  boost::lockfree::stack<T*> chains_{0};
  // Relaxed: a hint for trimming; the lock-free stack itself publishes the chains.
  detail::Atomic<std::int64_t> count_{0};
};

}  // namespace weft::fibers

// Divides tasks among several pools.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <stdexcept>
#include <utility>
#include <weft/detail/atomic.hpp>
#include <weft/pool.hpp>

namespace weft {

// Selects how a PoolSet chooses the pool for a task.
enum class Balance : std::uint8_t {
  round_robin,  // Each pool in turn. Skips pools without a free slot, unless no pool has one.
  least_tasks,  // The pool with the smallest sum of busy, released, queued and blocked (PoolStats).
};

// Divides tasks among several pools with the same options. Each pool is an ordinary FiberPool;
// without a parent, it has its own lock, queue and workers. A task stays in its pool, even if
// another pool later has a free slot.
//
//   PoolSet pools(10, {.capacity = 5'000}, Balance::least_tasks);
//   if (pools.submit(task)) ...
//
// Context, Throws, Ordering: the same as for FiberPool.
class PoolSet : private detail::WrongPoolCalls {
 public:
  // Makes `count` pools.
  // Throws: what FiberPool's constructor throws, and std::invalid_argument if `count` is 0.
  PoolSet(std::size_t count, const PoolOptions& each, Balance balance = Balance::round_robin)
      : balance_(balance) {
    if (count == 0)
      WEFT_THROW(std::invalid_argument("weft::PoolSet: count = 0; must be at least 1"));
    for (std::size_t i = 0; i < count; ++i) pools_.emplace_back(each);
  }

  // Returns the number of pools.
  [[nodiscard]] std::size_t size() const noexcept { return pools_.size(); }
  // Returns pool number `i`; `i` must be below size().
  [[nodiscard]] FiberPool& operator[](std::size_t i) noexcept { return pools_[i]; }
  // Returns an iterator to the first pool.
  [[nodiscard]] auto begin() noexcept { return pools_.begin(); }
  // Returns an iterator past the last pool.
  [[nodiscard]] auto end() noexcept { return pools_.end(); }

  // Returns the pool for the next task according to the Balance. round_robin selects the next pool
  // with a free slot, if there is one.
  [[nodiscard]] FiberPool& next() noexcept {
    // Relaxed: no other data depends on the turn number.
    const std::uint64_t turn = turn_.fetch_add(1, detail::relaxed);
    FiberPool* best = &at(turn);
    std::uint64_t best_rank = rank(*best);
    for (std::size_t i = 1; i < pools_.size() && best_rank > 0; ++i) {
      FiberPool& other = at(turn + i);
      const std::uint64_t other_rank = rank(other);
      if (other_rank < best_rank) {
        best = &other;
        best_rank = other_rank;
      }
    }
    return *best;
  }
  // Submits a task to the pool that next() returns, as FiberPool::submit() does.
  template <detail::PoolCallable F>
  Accepted submit(F&& callable) {
    return next().submit(std::forward<F>(callable));
  }
  template <detail::PoolCallable F>
  Accepted submit(const SubmitOptions& options, F&& callable) {
    return next().submit(options, std::forward<F>(callable));
  }
  using WrongPoolCalls::submit;  // The compiler's error for a wrong F states what F must take.

  // Calls FiberPool::wait_idle() on one pool after another, so it parks until each pool has been
  // idle once.
  // Throws: std::system_error (resource_deadlock_would_occur) if a task of one of the pools calls
  // it.
  void wait_idle() {
    for (FiberPool& pool : pools_) pool.wait_idle();
  }
  // Calls FiberPool::close() on each pool.
  void close(Close mode) noexcept {
    for (FiberPool& pool : pools_) pool.close(mode);
  }
  // Parks until every pool has been closed and is no longer used by its fibers.
  // Throws: whatever FiberPool::join() throws.
  void join() {
    for (FiberPool& pool : pools_) pool.join();
  }

 private:
  [[nodiscard]] FiberPool& at(std::uint64_t turn) noexcept {
    return pools_[static_cast<std::size_t>(turn % pools_.size())];
  }
  // Returns the pool's rank. next() selects a pool of the lowest rank, and stops its search at 0.
  [[nodiscard]] std::uint64_t rank(FiberPool& pool) const noexcept {
    if (balance_ == Balance::round_robin) return pool.available_hint() > 0 ? 0 : 1;
    const PoolStats stats = pool.stats();
    return stats.busy + stats.released + stats.queued + stats.blocked;
  }

  const Balance balance_;
  std::deque<FiberPool> pools_;
  detail::Atomic<std::uint64_t> turn_{0};
};

}  // namespace weft

// Checks the invariants that a pool must keep, whatever calls it gets.
#pragma once

#include <atomic>
#include <cstddef>
#include <weft/pool_options.hpp>

namespace weft::test {

// Counts the tasks that run at once, and records the maximum.
class Concurrency {
 public:
  class Stay {
   public:
    explicit Stay(Concurrency& gauge) : gauge_(gauge) { gauge_.enter(); }
    ~Stay() { gauge_.now_.fetch_sub(1); }
    Stay(const Stay&) = delete;
    Stay& operator=(const Stay&) = delete;

   private:
    Concurrency& gauge_;
  };

  [[nodiscard]] std::size_t most() const { return most_.load(); }
  void forget_most() { most_.store(0); }

 private:
  void enter() {
    const std::size_t now = now_.fetch_add(1) + 1;
    std::size_t most = most_.load();
    while (now > most && !most_.compare_exchange_weak(most, now)) {
    }
  }

  std::atomic<std::size_t> now_{0};
  std::atomic<std::size_t> most_{0};
};

// Returns whether the counts of a pool agree with one another, as they must at any moment.
[[nodiscard]] inline bool balanced(const PoolStats& stats) {
  return stats.submitted + stats.in_sub_pools == stats.completed + stats.failed + stats.cancelled +
                                                     stats.busy + stats.released +
                                                     stats.in_callers + stats.queued &&
         stats.live == stats.busy + stats.idle;
}

}  // namespace weft::test

// Counts the threads that are using a scheduler and are not its workers.
#pragma once

#include <cstdint>
#include <weft/detail/atomic.hpp>

#include "base/thread.hpp"

namespace weft::scheduler {

// Keeps a scheduler alive while threads other than its workers use it, and counts the fibers that
// these threads spawn. Without this class, the scheduler could be destroyed while such a thread is
// still waking the last fiber. Also counts the pinned fibers that the scheduler's workers spawn.
// Order
//   [visit]    ~Visit() decrements count_ (release) -> wait_until_none() reads 0 (acquire): the
//              visitors' accesses to the scheduler precede its destruction.
//   [outside]  note_spawn() increments spawned_ (release) -> spawned() loads it (acquire): the
//              caller then sees what the spawning threads did before they called note_spawn().
class Visitors {
 public:
  class Visit {
   public:
    explicit Visit(Visitors& visitors) noexcept : count_(visitors.count_) {
      // Relaxed: the caller already holds an object, such as a parked fiber, that keeps the
      // scheduler alive until this increment.
      count_.fetch_add(1, detail::relaxed);
    }
    ~Visit() { count_.fetch_sub(1, detail::release); }  // [visit]
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

   private:
    detail::Atomic<std::uint32_t>& count_;
  };

  void note_spawn() noexcept { spawned_.fetch_add(1, detail::release); }  // [outside]
  [[nodiscard]] std::uint64_t spawned() const noexcept {
    return spawned_.load(detail::acquire);  // [outside]
  }
  void wait_until_none() const noexcept {
    while (count_.load(detail::acquire) != 0) base::yield_processor();  // [visit]
  }

 private:
  detail::Atomic<std::uint32_t> count_{0};
  detail::Atomic<std::uint64_t> spawned_{0};
};

}  // namespace weft::scheduler

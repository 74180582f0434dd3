// Counts the threads, other than its workers, that are using a scheduler.
#pragma once

#include <cstdint>
#include <weft/detail/atomic.hpp>

#include "base/thread.hpp"

namespace weft::scheduler {

// Keeps a scheduler alive while threads other than its workers use it, and counts the fibers that
// these threads spawn. Such a thread may make the last fiber runnable; once that fiber ends, the
// scheduler may be destroyed. A pinned spawn by a worker of the scheduler also counts here.
// Order
//   [visit]    the visitor leaves (release) -> the destructor reads 0 (acquire).
//   [outside]  note_spawn counts (release) -> spawned loads (acquire), as [count] in Counter.
class Visitors {
 public:
  class Visit {
   public:
    explicit Visit(Visitors& visitors) noexcept : count_(visitors.count_) {
      // Relaxed: until this increment, an object that the caller holds, such as a parked fiber,
      // keeps the scheduler alive.
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

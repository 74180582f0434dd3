// Lets the monitor sleep while all workers are asleep.
#pragma once

#include <cstdint>
#include <weft/detail/atomic.hpp>

#include "base/parker.hpp"

namespace weft::scheduler {

// Order
//   [asleep]  rest() sets asleep_, executes a full fence, and reads the states of all workers. A
//             worker that ends its sleep executes a full fence; its work_begins() then reads
//             asleep_. At least one side sees the other's change.
//   [goal]    rest() sets asleep_, executes a full fence, and reads whether the memory goal refuses
//             spawns. A thread that makes the goal refuse spawns then executes a full fence, and
//             calls end(), which clears asleep_. At least one side sees the other's change.
class MonitorRest {
 public:
  // Called by a worker that has slept, after a full fence.
  void work_begins() noexcept {
    if (asleep_.load(detail::relaxed) != 0) [[unlikely]]  // [asleep]
      end();
  }
  void end() noexcept {
    asleep_.store(0, detail::seq_cst);  // [asleep]
    base::futex_wake_all(asleep_);
  }
  // If `may_rest` returns true, the monitor sleeps until a worker wakes up or end() is called.
  template <class MayRest>
  void rest(MayRest may_rest) noexcept {
    asleep_.store(1, detail::seq_cst);  // [asleep]
    detail::full_fence();               // [asleep]
    if (may_rest()) base::futex_wait(asleep_, 1, Deadline::never());
    // Relaxed: a worker that wakes up need not see this store, because the monitor is awake and
    // will sample that worker.
    asleep_.store(0, detail::relaxed);
  }

 private:
  detail::Atomic<std::uint32_t> asleep_{0};
};

}  // namespace weft::scheduler

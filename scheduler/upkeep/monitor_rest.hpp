// Lets the monitor sleep while all workers sleep.
#pragma once

#include <cstdint>
#include <weft/detail/atomic.hpp>

#include "base/parker.hpp"

namespace weft::scheduler {

// Order
//   [asleep]  rest raises asleep_; full_fence; the monitor finds all workers asleep, against: a
//             worker ends its sleep; full_fence; asleep_ is read (work_begins). At least one side
//             sees the other's change.
//   [goal]    rest raises asleep_; full_fence; the monitor finds that no spawns are refused,
//             against: spawns become refused; full_fence; asleep_ is cleared (end). At least one
//             side sees the other's change.
class MonitorRest {
 public:
  // A worker that has slept calls it, after a full fence.
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
    // Relaxed: the monitor's next sample sees a worker that wakes up now.
    asleep_.store(0, detail::relaxed);
  }

 private:
  detail::Atomic<std::uint32_t> asleep_{0};
};

}  // namespace weft::scheduler

// Lets threads wait until all fibers have ended.
#pragma once

#include <cstdint>
#include <weft/deadline.hpp>
#include <weft/detail/atomic.hpp>

#include "base/parker.hpp"
#include "scheduler/sleep/parked_threads.hpp"

namespace weft::scheduler {

// Order
//   [drain]  wait() raises waiting_, calls full_fence, and counts the fibers. A worker counts its
//            last fiber as ended, calls full_fence, and reads waiting_ in worker_sleeps(). At least
//            one side sees the other side's change. Other accesses are relaxed: at worst a worker
//            notifies a thread that is no longer waiting.
class Quiescence {
 public:
  // Selects what a thread does if its deadline passes while fibers still exist.
  enum class Then : std::uint8_t { acts, waits_on };

  // Called by a worker that is about to sleep, after a full fence.
  void worker_sleeps() noexcept {
    if (waiting_.load(detail::relaxed) == 0) return;  // [drain], by the fence in sleep()
    epoch_.fetch_add(1, detail::release);             // [drain]
    base::futex_wake_all(epoch_);
  }

  // Called by a plain thread. Waits until is_quiet() is true; returns false if the deadline passed
  // first.
  template <class IsQuiet>
  bool wait(Deadline deadline, Then then, IsQuiet is_quiet) noexcept {
    waiting_.fetch_add(1, detail::seq_cst);  // [drain]
    bool quiet = false;
    for (;;) {
      const std::uint32_t epoch = epoch_.load(detail::acquire);  // [drain]
      detail::full_fence();                                      // [drain]
      quiet = is_quiet();
      if (quiet || deadline.passed()) break;
      // Only a thread that will keep waiting counts as parked, because a thread that acts at its
      // deadline may wake fibers.
      if (then == Then::waits_on) ParkedThreads::begin();
      base::futex_wait(epoch_, epoch, deadline);
      if (then == Then::waits_on) ParkedThreads::end();
    }
    waiting_.fetch_sub(1, detail::relaxed);
    return quiet;
  }

 private:
  detail::Atomic<std::uint32_t> waiting_{0};
  detail::Atomic<std::uint32_t> epoch_{0};
};

}  // namespace weft::scheduler

// Which sleeper watches what nobody else looks at: the poller and the timers.
#pragma once

#include <cstdint>
#include <limits>
#include <weft/detail/atomic.hpp>

#include "base/cache_line.hpp"

namespace weft::scheduler {

// One sleeping worker at a time holds the watch. It sleeps in the event source, if that watches
// anything, and no longer than until the earliest timer of any worker. README.md here proves that
// while any worker sleeps one of them holds the watch, or one is awake that will see to it.
// Order
//   [watch]  The watch is given up; full_fence; the bits of IdleSet are read, against: a bit is
//            set; full_fence; the watch is found to be held. And: a timer is set, or a descriptor
//            added; full_fence; the watch and its limit are read, against: the watch is taken and
//            its limit told; full_fence; timers and event source are read. Of each two, one sees
//            the other. The holder is read by acquire: a spare was made before it took the watch.
class Watch {
 public:
  static constexpr int kNobody = -1;

  // By a worker whose bit in the IdleSet is set, or by the searcher that naps.
  [[nodiscard]] bool try_begin(unsigned worker) noexcept {
    int nobody = kNobody;
    // Relaxed look first, so that many sleepers do not fight for the line.
    return holder_.load(detail::relaxed) == kNobody &&
           holder_.compare_exchange_strong(nobody, static_cast<int>(worker), detail::seq_cst,
                                           detail::relaxed);  // [watch]
  }
  void end() noexcept { holder_.store(kNobody, detail::seq_cst); }  // [watch]

  // By the holder: when it will look again by itself, in nanoseconds. A full fence must follow.
  void set_limit(std::int64_t limit) noexcept { limit_.store(limit, detail::relaxed); }

  // After a full fence, but for hints.
  [[nodiscard]] int holder() const noexcept { return holder_.load(detail::acquire); }  // [watch]
  [[nodiscard]] std::int64_t limit() const noexcept { return limit_.load(detail::relaxed); }

 private:
  alignas(base::kCacheLine) detail::Atomic<int> holder_{kNobody};
  // Relaxed: the fences of [watch] order it.
  detail::Atomic<std::int64_t> limit_{std::numeric_limits<std::int64_t>::max()};
};

}  // namespace weft::scheduler

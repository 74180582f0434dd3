// Records which sleeper watches the poller and the timers.
#pragma once

#include <cstdint>
#include <limits>
#include <weft/detail/atomic.hpp>

#include "base/cache_line.hpp"

namespace weft::scheduler {

// One sleeping worker at a time holds the watch. It sleeps in the event source, if that watches
// anything, and no longer than until the earliest timer of any worker. README.md here proves that
// while any worker sleeps, one of them holds the watch, or an awake worker will ensure it.
// Order
//   [watch]  A worker that sleeps has set a timer; full_fence; it finds the watch held, and reads
//            its limit, against: the watch is taken and its limit told; full_fence; timers and
//            event source are read. One of the two sees the other. The same holds for a plain
//            thread that adds a descriptor. The holder is read by acquire, because a spare was made
//            before it took the watch.
class Watch {
 public:
  static constexpr int kNobody = -1;

  // A worker whose bit in the IdleSet is set calls it.
  [[nodiscard]] bool try_begin(unsigned worker) noexcept {
    int nobody = kNobody;
    // The relaxed check comes first, so that many sleepers do not compete for the cache line.
    return holder_.load(detail::relaxed) == kNobody &&
           holder_.compare_exchange_strong(nobody, static_cast<int>(worker), detail::seq_cst,
                                           detail::relaxed);  // [watch]
  }
  void end() noexcept { holder_.store(kNobody, detail::seq_cst); }  // [watch]

  // The holder publishes when it will look again, in nanoseconds, and whether it sleeps in the
  // event source. A full fence must follow.
  void set_limit(std::int64_t limit, bool sees_events) noexcept {
    limit_.store(limit, detail::relaxed);
    sees_events_.store(sees_events, detail::relaxed);
  }

  // Must be called after a full fence, except for hints.
  [[nodiscard]] int holder() const noexcept { return holder_.load(detail::acquire); }  // [watch]
  [[nodiscard]] std::int64_t limit() const noexcept { return limit_.load(detail::relaxed); }
  [[nodiscard]] bool sees_events() const noexcept { return sees_events_.load(detail::relaxed); }

 private:
  alignas(base::kCacheLine) detail::Atomic<int> holder_{kNobody};
  // Relaxed: the fences of [watch] order both.
  detail::Atomic<std::int64_t> limit_{std::numeric_limits<std::int64_t>::max()};
  detail::Atomic<bool> sees_events_{false};
};

}  // namespace weft::scheduler

// Records which sleeper watches the poller and the timers.
#pragma once

#include <cstdint>
#include <limits>
#include <weft/detail/atomic.hpp>

#include "base/cache_line.hpp"

namespace weft::scheduler {

// One sleeping worker at a time holds the watch. It sleeps in the event source, if that watches
// anything, and at most until the earliest timer of any worker. While any worker sleeps, a sleeper
// holds the watch, or an awake worker will ensure this. The proof is in scheduler/README.md.
// Order
//   [watch]  A worker that sleeps has set a timer; full_fence; it finds the watch held, and reads
//            its limit, against: the holder takes the watch and stores its limit; full_fence; it
//            reads the timers and the event source. One of the two sees the other. The same holds
//            for a plain thread that adds a descriptor. A reader loads the holder by acquire,
//            because a spare worker may have been made shortly before it took the watch.
class Watch {
 public:
  static constexpr int kNobody = -1;

  // A worker whose bit in the IdleSet is set calls it.
  [[nodiscard]] bool try_begin(unsigned worker) noexcept {
    int nobody = kNobody;
    // The relaxed check comes first, so that many sleepers do not write to the cache line.
    return holder_.load(detail::relaxed) == kNobody &&
           holder_.compare_exchange_strong(nobody, static_cast<int>(worker), detail::seq_cst,
                                           detail::relaxed);  // [watch]
  }
  void end() noexcept { holder_.store(kNobody, detail::seq_cst); }  // [watch]

  // The holder publishes at what time it will wake up, in nanoseconds, and whether it sleeps in the
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

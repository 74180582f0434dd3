// Records which sleeping worker watches the poller and the timers.
#pragma once

#include <cstdint>
#include <limits>
#include <weft/detail/atomic.hpp>

#include "base/cache_line.hpp"

namespace weft::scheduler {

// One sleeping worker at a time holds the watch. The holder sleeps at most until the earliest timer
// of any worker. It sleeps in the event source if the source watches any descriptor. While any
// worker is asleep, either a sleeper holds the watch, or an awake worker will wake a sleeper, which
// then takes the watch. The proof is in scheduler/README.md.
// Order
//   [watch]  A worker sets a timer, calls full_fence before its sleep, and reads the holder and the
//            limit. The holder takes the watch, stores the limit, calls full_fence, and reads the
//            timers and the event source. At least one side sees the other side's change. A plain
//            thread that adds a descriptor takes the same steps as a worker that sets a timer. Each
//            thread loads the holder with acquire order. It therefore sees the complete Desk object
//            of the holder, even if the holder is a new worker.
class Watch {
 public:
  static constexpr int kNobody = -1;

  // Called by a worker while its bit in the IdleSet is set.
  [[nodiscard]] bool try_begin(unsigned worker) noexcept {
    int nobody = kNobody;
    // The relaxed check comes first, so that many sleepers do not write to the cache line.
    return holder_.load(detail::relaxed) == kNobody &&
           holder_.compare_exchange_strong(nobody, static_cast<int>(worker), detail::seq_cst,
                                           detail::relaxed);  // [watch]
  }
  void end() noexcept { holder_.store(kNobody, detail::seq_cst); }  // [watch]

  // The holder publishes the time at which it will wake up, in nanoseconds, and whether it sleeps
  // in the event source. If other threads rely on the values, a full fence must follow the call.
  void set_limit(std::int64_t limit, bool sees_events) noexcept {
    limit_.store(limit, detail::relaxed);
    sees_events_.store(sees_events, detail::relaxed);
  }

  // Must be called after a full fence, unless the caller needs only a hint.
  [[nodiscard]] int holder() const noexcept { return holder_.load(detail::acquire); }  // [watch]
  [[nodiscard]] std::int64_t limit() const noexcept { return limit_.load(detail::relaxed); }
  [[nodiscard]] bool sees_events() const noexcept { return sees_events_.load(detail::relaxed); }

 private:
  alignas(base::kCacheLine) detail::Atomic<int> holder_{kNobody};
  // Relaxed: the full fences of order [watch] also order the accesses to the next two members.
  detail::Atomic<std::int64_t> limit_{std::numeric_limits<std::int64_t>::max()};
  detail::Atomic<bool> sees_events_{false};
};

}  // namespace weft::scheduler

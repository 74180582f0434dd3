// Records which workers are asleep and which are searching for work. scheduler/README.md describes
// and proves the protocol.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <weft/detail/atomic.hpp>
#include <weft/detail/invariant.hpp>

#include "base/cache_line.hpp"

namespace weft::scheduler {

// A worker is busy, searching or asleep. A thread that adds work wakes at most one sleeper, and no
// sleeper while a worker is searching. The last searcher checks for more work when its search ends.
// Invariants
//   I1  A worker's bit is set exactly while the worker sleeps and no waker has chosen it.
//   I2  searching_ counts the searchers. It counts a sleeper from the moment a waker chooses it,
//       even before the sleeper runs.
//   I3  After a worker lowers searching_ to 0 or sets its own bit, it checks all queues. Not
//       asserted, because the caller checks the queues, and this class cannot see whether it does.
// Order
//   [idle]  A thread makes work visible, calls full_fence, and reads searching_ and bits_ in
//           work_added(). A worker that sets its bit to sleep, or lowers searching_ as the last
//           searcher, then calls full_fence, and reads the queues. At least one side sees the other
//           side's change, because full_fence is seq_cst. A caller that unparks a worker reads the
//           worker's bit with acquire order. It therefore sees the complete Desk object of the
//           worker, even if the worker is new.
class IdleSet {
 public:
  static constexpr unsigned kMaxWorkers = 2048;
  static constexpr int kNobody = -1;

  // `workers` is the initial number of workers; `most` is the maximum, including all spare workers.
  IdleSet(unsigned workers, unsigned most) noexcept : words_((most + 63) / 64), workers_(workers) {}
  explicit IdleSet(unsigned workers) noexcept : IdleSet(workers, workers) {}

  // Called by the monitor when the number of active workers changes.
  void set_workers(unsigned workers) noexcept { workers_.store(workers, detail::relaxed); }

  // A cheap check before work_added(): returns whether a worker should be woken for new work.
  [[nodiscard]] bool wants_wake_hint() const noexcept {
    // Relaxed: scheduler/README.md explains why a stale value is harmless.
    return searching_.load(detail::relaxed) == 0 && anyone_asleep();
  }
  [[nodiscard]] bool anyone_asleep() const noexcept {
    std::uint64_t asleep = bits_[0].load(detail::relaxed);
    for (unsigned i = 1; i < words_; ++i) asleep |= bits_[i].load(detail::relaxed);
    return asleep != 0;
  }
  [[nodiscard]] unsigned asleep_hint() const noexcept {
    unsigned asleep = 0;
    for (unsigned i = 0; i < words_; ++i) {
      asleep += static_cast<unsigned>(std::popcount(bits_[i].load(detail::relaxed)));
    }
    return asleep;
  }

  // Must be called after new work has become visible to other threads. scheduler/README.md states
  // where a full fence must precede the call. Returns kNobody, or the worker that the caller must
  // unpark; that worker then counts as searching. Chooses `watcher` last, because the holder of the
  // watch should keep the watch.
  [[nodiscard]] int work_added(int watcher = kNobody) noexcept;

  // Called by a worker without work. Returns false if enough other workers are searching; the
  // caller may then sleep at once.
  [[nodiscard]] bool try_begin_search() noexcept;
  // Called by a searcher that has found work or gives up. Returns true for the last searcher.
  [[nodiscard]] bool end_search() noexcept {
    const std::uint32_t before = searching_.fetch_sub(1, detail::seq_cst);  // [idle]
    WEFT_INVARIANT(before > 0, "IdleSet I2: a searcher is counted");
    return before == 1;
  }

  // The result may be stale.
  [[nodiscard]] bool is_asleep(unsigned worker) const noexcept {
    return (bits_[worker / 64].load(detail::relaxed) >> (worker % 64) & 1) != 0;
  }
  // Returns any sleeping worker, or kNobody. Does not clear the worker's bit.
  [[nodiscard]] int any_asleep() const noexcept;
  void begin_sleep(unsigned worker) noexcept;
  // Called by the sleeper itself. Returns false if a waker has chosen the sleeper. The sleeper then
  // counts as searching, and that waker's unpark may come later.
  [[nodiscard]] bool try_end_sleep(unsigned worker) noexcept;

 private:
  using Word = detail::Atomic<std::uint64_t>;

  [[nodiscard]] int choose_sleeper(int watcher) noexcept;
  [[nodiscard]] bool choose(unsigned worker) noexcept;

  alignas(base::kCacheLine) detail::Atomic<std::uint32_t> searching_{0};
  unsigned words_;
  detail::Atomic<unsigned> workers_;  // Relaxed: it only bounds the number of searchers.
  alignas(base::kCacheLine) std::array<Word, kMaxWorkers / 64> bits_{};
};

}  // namespace weft::scheduler

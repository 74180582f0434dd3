#include <weft/detail/spin_lock.hpp>

#include <algorithm>

#include "base/panic.hpp"
#include "base/thread.hpp"

namespace weft::detail {

// Backs off for increasing times. The guarded sections are so short that the holder can complete
// dozens of them while its processor keeps the cache lines of the lock and its data. If the owners
// alternated at each section, each section would cost several transfers of cache lines. If the
// backoff does not help, the holder has lost its processor, and the caller yields its own. After
// more rounds the caller sleeps, because with a real-time priority (SCHED_FIFO) it might yield to
// no other thread. In the child of a fork that a fiber made, the holder may be a thread that exists
// only in the parent. The function reports such a deadlock after a while.
void SpinLock::lock_contended() noexcept {
  constexpr unsigned kLongestPause = 64;
  constexpr unsigned kRoundsBeforeYield = 16;
  constexpr unsigned kRoundsBeforeSleep = 64;
  constexpr unsigned kRoundsOfPatience = 4096;  // Some 0.3 s.
  unsigned pauses = 8;
  for (unsigned round = 0;; ++round) {
    for (unsigned i = 0; i < pauses; ++i) pause_cpu();
    if (try_lock()) return;
    pauses = std::min(pauses * 2, kLongestPause);
    if (round >= kRoundsBeforeSleep) {
      base::sleep_thread(50'000);
      WEFT_CHECK(
          round < kRoundsOfPatience || !base::is_forked_fiber(),
          "deadlock in a forked child: the lock is held by a thread that fork() did not copy; "
          "leave the child by _exit() or exec()");
    } else if (round >= kRoundsBeforeYield) {
      base::yield_processor();
    }
  }
}

}  // namespace weft::detail

#include <weft/detail/spin_lock.hpp>

#include "base/thread.hpp"

namespace weft::detail {

void SpinLock::lock_contended() noexcept {
  constexpr int kSpinsBeforeYield = 64;
  for (int spins = 0;; ++spins) {
    if (try_lock()) return;
    if (spins < kSpinsBeforeYield) {
      pause_cpu();
    } else {
      base::yield_processor();
      spins = 0;
    }
  }
}

}  // namespace weft::detail

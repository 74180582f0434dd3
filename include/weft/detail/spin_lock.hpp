// A lock for a few instructions.
#pragma once

#include <weft/detail/atomic.hpp>

namespace weft::detail {

// Guards the wait lists of primitives and other sections of a few dozen instructions.
// Never held across a callback or an allocation. It may be handed to an After, which unlocks it
// on the other side of the switch: so a waiter becomes visible only once its registers are saved.
// Order
//   [spin]  unlock stores false (release) -> lock exchanges (acquire): the section is visible.
class SpinLock {
 public:
  [[gnu::always_inline]] void lock() noexcept {
    if (locked_.exchange(true, acquire)) [[unlikely]]
      lock_contended();  // [spin]
  }
  [[nodiscard]] bool try_lock() noexcept {
    // Relaxed: only avoids a write that would fail anyway.
    return !locked_.load(relaxed) && !locked_.exchange(true, acquire);  // [spin]
  }
  [[gnu::always_inline]] void unlock() noexcept { locked_.store(false, release); }  // [spin]

 private:
  // Backs off, then lets other threads run: the holder may have lost its processor.
  void lock_contended() noexcept;

  Atomic<bool> locked_{false};
};

}  // namespace weft::detail

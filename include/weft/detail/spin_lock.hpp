// Provides a lock for critical sections of a few instructions.
#pragma once

#include <weft/detail/atomic.hpp>
#include <weft/detail/guard.hpp>
#include <weft/detail/thread_annotations.hpp>

namespace weft::detail {

// Guards the wait lists of primitives and other sections of a few dozen instructions. Under the
// lock, no callback is called and no memory is allocated, but a value may be moved or copied. A
// fiber may park while it holds the lock: an After object, passed to park(), unlocks the lock after
// the switch. In this way, a waiter becomes visible only after its fiber's registers are saved.
// Order
//   [spin]  unlock() stores false (release) -> lock() exchanges it (acquire): lock() sees all
//           writes of the previous critical section.
class WEFT_LOCK("spin lock") SpinLock {
 public:
  [[gnu::always_inline]] void lock() noexcept WEFT_ACQUIRES() {
    if (locked_.exchange(true, acquire)) [[unlikely]]
      lock_contended();  // [spin]
  }
  [[nodiscard]] bool try_lock() noexcept WEFT_TRY_ACQUIRES(true) {
    // Relaxed: this load only avoids an exchange that would fail anyway.
    return !locked_.load(relaxed) && !locked_.exchange(true, acquire);  // [spin]
  }
  [[gnu::always_inline]] void unlock() noexcept WEFT_RELEASES() {
    locked_.store(false, release);  // [spin]
  }

 private:
  // Spins for a while, then yields, then sleeps: the holder may be waiting for a processor.
  void lock_contended() noexcept WEFT_NOT_ANALYZED;  // Not analyzed: it implements the lock.

  Atomic<bool> locked_{false};
};

using SpinGuard = Guard<SpinLock>;

}  // namespace weft::detail

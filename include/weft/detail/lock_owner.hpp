// Records the owner of a lock, for deadlock reports.
#pragma once

#include <cstdint>
#include <weft/detail/atomic.hpp>

namespace weft::detail {

// Stores the lowest bits of the owning fiber's number; 0 if the owner is unknown or a plain thread.
// The three bytes would otherwise be padding after a lock's SpinLock. The code in
// scheduler/upkeep/wait_cycles.cpp reads these bytes. A lock records its owner only while
// base::notes_lock_owners() is true. With an unconditional store, lock() would execute a tenth more
// instructions. Instead, is_turn_over(), which each locking call evaluates anyway, returns true
// while owners are recorded. The call then leaves its fast path. Relaxed order suffices, because
// writers hold the spin lock, and wait_cycles.cpp checks each result again.
class LockOwner {
 public:
  static constexpr std::uint32_t kBits = 24;

  void note(std::uint64_t fiber) noexcept {
    for (Atomic<std::uint8_t>& byte : bytes_) {
      byte.store(static_cast<std::uint8_t>(fiber), relaxed);
      fiber >>= 8U;
    }
  }
  [[nodiscard]] static constexpr std::uint32_t digest_of(std::uint64_t fiber) noexcept {
    return static_cast<std::uint32_t>(fiber & ((std::uint64_t{1} << kBits) - 1));
  }

 private:
  // An std::array would make each program include the 400 lines of <array>.
  Atomic<std::uint8_t> bytes_[kBits / 8]{};
};

}  // namespace weft::detail

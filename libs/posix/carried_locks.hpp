// Locks that fibers hold while they are parked, and the fibers that wait for such a lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <weft/deadline.hpp>
#include <weft/detail/atomic.hpp>
#include <weft/detail/waiter.hpp>

namespace weft::posix {

// A thread knows the addresses of that many of its locks; it only counts the others.
inline constexpr std::size_t kMostKnown = 14;

namespace carrying {
// Set by the first Scope with Locks::carry, and never reset. Relaxed: a thread that locks before it
// sees the flag only counts the lock.
extern constinit detail::Atomic<bool> has_begun;
}  // namespace carrying
[[nodiscard]] inline bool carrying_has_begun() noexcept {
  return carrying::has_begun.load(detail::relaxed);
}
void begin_carrying() noexcept;

// The locks that a fiber takes into a park. They are listed by address from put_down() to
// pick_up(), so that other fibers of the thread, which the C library takes for the holder, wait.
class CarriedLocks {
 public:
  CarriedLocks() noexcept = default;
  CarriedLocks(const CarriedLocks&) = delete;
  CarriedLocks& operator=(const CarriedLocks&) = delete;

  // Lists the locks that the calling thread knows, except `released` (null: none), and removes them
  // from the thread's own.
  void put_down(const void* released) noexcept;
  // Gives them back to the thread, which must be the same.
  void pick_up() noexcept;

  struct Node {
    const void* lock = nullptr;
    const void* thread = nullptr;
    // Guarded by the lock of its shard. Unchecked: no member leads to that lock.
    Node* next = nullptr;
  };

 private:
  std::array<Node, kMostKnown> nodes_;
  std::size_t count_ = 0;
};

// How a kind of lock is taken by the C library.
struct LockKind {
  const char* call;                     // In reports.
  int (*attempt)(void* lock) noexcept;  // Never waits; EBUSY if it would.
  int (*wait)(void* lock);
  int (*wait_until)(void* lock, const timespec* time);  // Uses the monotonic clock.
  detail::WaitReason reason;
  // A lock with one holder at a time is reserved for the fiber that a release has chosen. The C
  // library may let a thread take it twice, so it is not tried while a parked fiber holds it.
  bool is_exclusive;
};

// Takes a lock that the calling thread does not hold. A fiber parks while a parked fiber holds the
// lock. Returns what the C library returns. Keeps errno. Call it once carrying has begun. `from` is
// the return address of the call.
[[nodiscard]] int take_lock(void* lock, const LockKind& kind, Deadline limit,
                            const void* from) noexcept;
// Returns whether a parked fiber holds the lock.
[[nodiscard]] bool is_carried(const void* lock) noexcept;
// Wakes a fiber that waits for the lock, which its holder has just released. It wakes all of them
// if the lock is not exclusive, or may still be held.
void lock_was_released(const void* lock, bool is_free_and_exclusive) noexcept;
// For the child of a fork: no fiber waits there, and a thread that fork() did not copy may hold a
// lock.
void forget_carried_locks() noexcept;

}  // namespace weft::posix

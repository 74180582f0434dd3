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

// A thread records the addresses of up to this many of its locks, and only counts further locks.
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

  // Moves the locks on the calling thread's list, except `released` (null: none), to the table of
  // carried locks.
  void put_down(const void* released) noexcept;
  // Gives the locks back to the thread, which must be the thread of put_down().
  void pick_up() noexcept;

  struct Node {
    const void* lock = nullptr;
    const void* thread = nullptr;
    // Guarded by the lock of its shard. Not annotated, because no member leads to that lock.
    Node* next = nullptr;
  };

 private:
  std::array<Node, kMostKnown> nodes_;
  std::size_t count_ = 0;
};

// The calls by which the C library takes a kind of lock.
struct LockKind {
  const char* call;                     // The name in reports.
  int (*attempt)(void* lock) noexcept;  // Never waits; returns EBUSY instead.
  int (*wait)(void* lock);
  int (*wait_until)(void* lock, const timespec* time);  // Uses the monotonic clock.
  detail::WaitReason reason;
  // A lock with one holder at a time is reserved for the fiber that a release has chosen. The C
  // library may let a thread take such a lock twice, so no caller tries the lock while a parked
  // fiber holds it.
  bool is_exclusive;
};

// Takes a lock that the calling thread does not hold. A fiber parks while a parked fiber holds the
// lock. Returns what the C library returns. Keeps errno. Call it only after carrying has begun.
// `from` is the return address of the call.
[[nodiscard]] int take_lock(void* lock, const LockKind& kind, Deadline limit,
                            const void* from) noexcept;
// Returns whether a parked fiber holds the lock.
[[nodiscard]] bool is_carried(const void* lock) noexcept;
// Wakes a fiber that waits for the lock, which its holder has just released. It wakes all such
// fibers if the lock is not exclusive, or may still be held.
void lock_was_released(const void* lock, bool is_free_and_exclusive) noexcept;
// Empties the table in the child of a fork: no fiber waits there, and a thread that fork() did not
// copy may hold a lock.
void forget_carried_locks() noexcept;

}  // namespace weft::posix

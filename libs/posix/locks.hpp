// The pthread locks that the calling thread holds.
#pragma once

#include <span>

namespace weft::posix {

// Returns how many mutexes, rwlocks and running initializations by pthread_once() the thread holds.
// A lock belongs to its thread, so a fiber that parked with one could deadlock its worker.
[[nodiscard]] int locks_held() noexcept;
// Returns how many of these a fiber cannot take into a park. These are initializations, and locks
// that were taken before a fiber could carry locks, or when the thread had too many. `released`
// (null: none) does not count, because the caller releases it; the result is above 0 if this
// release does not free the lock.
[[nodiscard]] int locks_that_stay(const void* released = nullptr) noexcept;
// Returns whether the lock is on the thread's list of locks that it holds.
[[nodiscard]] bool holds_lock(const void* lock) noexcept;
// Removes the last lock except `released` from the thread's list, without releasing the lock.
// Returns null if there is none.
[[nodiscard]] const void* take_known_lock(const void* released) noexcept;
void give_known_lock(const void* lock) noexcept;
// Stops counting the thread's locks: the fiber that took them has ended.
void forget_held_locks() noexcept;
// Returns an address that identifies the calling thread.
[[nodiscard]] const void* this_thread() noexcept;

}  // namespace weft::posix

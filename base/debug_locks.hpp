// Counts the locks of the C library that a thread holds; only in builds with -Ddebug_locks=true.
#pragma once

namespace weft::base {

#ifdef WEFT_DEBUG_LOCKS
inline constexpr bool kDebugLocks = true;
#else
inline constexpr bool kDebugLocks = false;
#endif

// Returns how many pthread mutexes and rwlocks the calling thread has locked, including std::mutex,
// std::shared_mutex and types that use them. Not inlined, because a fiber may call it on different
// threads.
[[nodiscard]] int locks_held() noexcept;

}  // namespace weft::base

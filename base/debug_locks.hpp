// Counts the locks of the C library that a thread holds; only in builds with -Ddebug_locks=true.
#pragma once

namespace weft::base {

#ifdef WEFT_DEBUG_LOCKS
inline constexpr bool kDebugLocks = true;
#else
inline constexpr bool kDebugLocks = false;
#endif

// Returns how many pthread mutexes and rwlocks (std::mutex, std::shared_mutex and what is built
// from them) the calling thread has locked. Not inlined: a fiber may call it from several threads.
[[nodiscard]] int locks_held() noexcept;

}  // namespace weft::base

// Functions for operating-system threads.
#pragma once

#include <cstdint>

namespace weft::base {

// Returns how many processors this process may use: the affinity mask of the calling thread,
// limited by the quota of the process's cgroups (rounded up). The result is at least 1.
[[nodiscard]] unsigned usable_processors() noexcept;

// Like usable_processors(), but returns 0 if the process has no free descriptor to read the quota.
[[nodiscard]] unsigned usable_processors_hint() noexcept;

// Returns how many processors of the machine are online, even if the process may not use them. The
// result is at least 1.
[[nodiscard]] unsigned online_processors() noexcept;

// Gives the calling thread the first 15 characters of the name, which ps, top and gdb show.
void set_thread_name(const char* name) noexcept;

// Returns the number of threads of the process, including the caller; 0 if the system does not
// report it.
[[nodiscard]] unsigned count_threads() noexcept;

// Returns whether the thread of this process with the number `thread` runs or waits for a
// processor; false if the system does not report it.
[[nodiscard]] bool is_runnable(int thread) noexcept;

// Returns how often the kernel has given the calling thread's processor to another thread.
[[nodiscard]] std::uint64_t count_preemptions() noexcept;

// Returns how long the calling thread has had a processor, in nanoseconds.
[[nodiscard]] std::int64_t thread_processor_time() noexcept;

// Returns errno. The function is never inlined, because compilers keep errno's address across a
// switch. ThreadSanitizer does not check it, because errno does not belong to a fiber.
[[nodiscard]] int last_error() noexcept;

// Gives this processor to another thread that is ready.
void yield_processor() noexcept;
// Suspends the calling thread, even if the caller is a fiber in a scope of weft-posix. Such a fiber
// may hold a SpinLock, so it must not park. Makes a raw system call, which weft-posix does not
// intercept. Preserves errno.
void sleep_thread(long nanoseconds) noexcept;

// For the child of a fork that a fiber made. The only thread of the child calls the first function
// when the child begins. The second function returns whether the caller is that thread. The fiber
// on that thread may wait for a lock that a missing thread held.
void note_forked_fiber() noexcept;
[[nodiscard]] bool is_forked_fiber() noexcept;

}  // namespace weft::base

// Calls about operating-system threads.
#pragma once

#include <cstdint>

namespace weft::base {

// Processors this process may use: the affinity mask of the calling thread, limited by the quota of
// the process's cgroups (rounded up). At least 1.
[[nodiscard]] unsigned usable_processors() noexcept;

// Does the same, or returns 0 if the process has no descriptor left to read the quota.
[[nodiscard]] unsigned usable_processors_hint() noexcept;

// Processors of the machine that are online, whether the process may use them or not. At least 1.
[[nodiscard]] unsigned online_processors() noexcept;

// Sets the first 15 characters of the name, which ps, top and gdb show.
void set_thread_name(const char* name) noexcept;

// Returns the number of threads of the process, including the caller; 0 if the system does not
// report it.
[[nodiscard]] unsigned count_threads() noexcept;

// Returns whether the thread of this process with that number runs or waits for a processor; false
// if the system does not report it.
[[nodiscard]] bool is_runnable(int thread) noexcept;

// Returns how often the kernel has given the calling thread's processor to another thread.
[[nodiscard]] std::uint64_t count_preemptions() noexcept;

// Returns how long the calling thread has had a processor, in nanoseconds.
[[nodiscard]] std::int64_t thread_processor_time() noexcept;

// Returns errno. The function is never inlined, because compilers keep errno's address across a
// switch. The thread sanitizer does not watch it, because errno does not belong to a fiber.
[[nodiscard]] int last_error() noexcept;

// Lets another thread have this processor.
void yield_processor() noexcept;
// Suspends the calling thread, even if the caller is a fiber in a scope of weft-posix: the fiber
// may hold a SpinLock, so it must not park. Makes a raw call, which weft-posix does not intercept.
// Keeps errno.
void sleep_thread(long nanoseconds) noexcept;

// Called in the child of a fork that a fiber made. The only thread of the child calls the first
// function when the child begins; the second returns whether the caller is that thread. Such a
// fiber may wait for a lock that a missing thread held.
void note_forked_fiber() noexcept;
[[nodiscard]] bool is_forked_fiber() noexcept;

}  // namespace weft::base

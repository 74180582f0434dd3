// Calls about operating-system threads.
#pragma once

#include <cstdint>

namespace weft::base {

// Processors this process may use: the affinity mask, limited by the quota of its cgroups (rounded
// up). At least 1.
[[nodiscard]] unsigned usable_processors() noexcept;

// The first 15 characters, shown by ps, top and gdb.
void set_thread_name(const char* name) noexcept;

// All threads of the process, the caller included; 0 when the system does not say.
[[nodiscard]] unsigned count_threads() noexcept;

// Returns whether the thread of this process with that number runs, or would if it had a processor;
// false when the system does not say.
[[nodiscard]] bool is_runnable(int thread) noexcept;

// How often the kernel has taken the processor away from the calling thread for another one.
[[nodiscard]] std::uint64_t count_preemptions() noexcept;

// How long the calling thread has had a processor, in nanoseconds.
[[nodiscard]] std::int64_t thread_processor_time() noexcept;

// errno. By a function that is compiled alone, since compilers keep its address over a switch; and
// that the thread sanitizer does not watch, as errno is no fiber's own.
[[nodiscard]] int last_error() noexcept;

// Lets another thread have this processor.
void yield_processor() noexcept;
// So does this, even if the caller's priority is above that of all others; some 0.1 ms.
void sleep_briefly() noexcept;

// The child of a fork that a fiber made: by the thread that is left, when it begins; and whether
// the caller is that thread. Such a fiber may come to a lock of a thread that is gone.
void note_forked_fiber() noexcept;
[[nodiscard]] bool is_forked_fiber() noexcept;

}  // namespace weft::base

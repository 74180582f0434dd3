// A diagnostic mode that sees each system call of a fiber in a Scope (Syscall User Dispatch).
#pragma once

#include <weft/detail/atomic.hpp>

namespace weft::posix {

namespace system_calls {
// Relaxed: a thread that sees a stale value misses some calls.
extern constinit detail::Atomic<bool> are_seen;
}  // namespace system_calls

// Begins the mode if the environment has WEFT_POSIX_SYSTEM_CALLS=1. Prints a sentence if the mode
// is not possible. Otherwise installs nothing.
void begin_system_calls() noexcept;

// Removes SIGSYS from the mask of each handler that the program has installed, because in this mode
// the kernel kills a thread that blocks SIGSYS. Costs some 70 system calls.
void let_handlers_be_seen() noexcept;

// Sets whether the kernel passes the calling thread's system calls to the handler.
void see_system_calls(bool are_seen) noexcept;
inline void see_system_calls_if_on(bool are_seen) noexcept {
  if (system_calls::are_seen.load(detail::relaxed)) [[unlikely]]
    see_system_calls(are_seen);
}
inline void begin_scope_if_on() noexcept {
  if (!system_calls::are_seen.load(detail::relaxed)) [[likely]]
    return;
  let_handlers_be_seen();
  see_system_calls(true);
}

}  // namespace weft::posix

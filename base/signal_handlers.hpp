// The handlers of signals that the process has.
#pragma once

#include <signal.h>

namespace weft::base {

// Registers a handler of the library's own, at most 8 of them. Such a handler wakes no fiber that
// waits for another fiber. Any thread may call it.
void add_own_signal_handler(const void* handler) noexcept;

// Makes `handler` the process's handler for a signal, and registers it as a handler of the
// library's own. The handler stays installed, since a signal may come late, so the library stays
// loaded. Returns false if the program handles the signal itself. Any thread may call it.
[[nodiscard]] bool install_own_signal_handler(int signal,
                                              void (*handler)(int, siginfo_t*, void*)) noexcept;

// Returns whether a later signal may run a handler of the program's. Handlers of faults do not
// count, because only a running thread faults. It makes one system call for each signal. Any thread
// may call it.
[[nodiscard]] bool has_foreign_signal_handler() noexcept;

}  // namespace weft::base

// Distinguishes the library's signal handlers from handlers of the program.
#pragma once

#include <signal.h>

namespace weft::base {

// Registers a handler of the library; there is room for 8 handlers. The handler must not wake a
// fiber that waits for another fiber. Any thread may call it.
void add_own_signal_handler(const void* handler) noexcept;

// Makes `handler` the process's handler for a signal, and registers it as a handler of the library.
// The handler stays installed and the library stays loaded, because a signal may arrive late.
// Returns false if the program handles the signal itself, or on failure. Any thread may call it.
[[nodiscard]] bool install_own_signal_handler(int signal,
                                              void (*handler)(int, siginfo_t*, void*)) noexcept;

// Returns whether a later signal may run a handler of the program. Handlers of faults do not count,
// because only a running thread can fault. Makes one system call for each signal. Any thread may
// call it.
[[nodiscard]] bool has_foreign_signal_handler() noexcept;

}  // namespace weft::base

// The handlers of signals that the process has.
#pragma once

#include <signal.h>

namespace weft::base {

// A handler of the library's own, which wakes no fiber that waits for another: at most 8. Any
// thread.
void add_own_signal_handler(const void* handler) noexcept;

// Makes `handler` the process's for a signal, as one of the library's own, and keeps the library
// loaded: it stays installed, since a signal may come late. Returns false if the program handles
// the signal itself. Any thread.
[[nodiscard]] bool install_own_signal_handler(int signal,
                                              void (*handler)(int, siginfo_t*, void*)) noexcept;

// Returns whether a signal that comes later may run a handler of the program's. Handlers of faults
// do not count: a fault is what a running thread does. A system call for each signal. Any thread.
[[nodiscard]] bool has_foreign_signal_handler() noexcept;

}  // namespace weft::base

// The handlers of signals that the process has.
#pragma once

namespace weft::base {

// A handler of the library's own, which wakes no fiber that waits for another: at most 8. Any
// thread.
void add_own_signal_handler(const void* handler) noexcept;

// Returns whether a signal that comes later may run a handler of the program's. Handlers of faults
// do not count: a fault is what a running thread does. A system call for each signal. Any thread.
[[nodiscard]] bool has_foreign_signal_handler() noexcept;

}  // namespace weft::base

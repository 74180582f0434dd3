// The report of a stack that was too small.
#pragma once

#include "fibers/stack_space.hpp"

namespace weft::fibers {

// Installs the SIGSEGV and SIGBUS handler, once per process, and keeps the library loaded. For a
// fault in a fiber's guard it writes `fiber 17 'name' overflowed its 64 KiB stack`, and the fiber's
// callable, spawn and innermost 20 calls. Every fault is then passed to the handler that was
// installed before; if that handler returns from an overflow, the process ends. Before the default
// effect of the signal ends the process, make_core_small() runs. Throws std::system_error.
void install_overflow_report();

// Registers the space with the handler. It has room for 64 spaces, and does not report overflows in
// further spaces.
void watch_for_overflow(const StackSpace& space) noexcept;
void unwatch_for_overflow(const StackSpace& space) noexcept;

// Excludes from the core file the parts of stacks that no fiber uses, in these spaces. Call it
// before the process ends with a core file. The stack with the address `kept` stays whole: its
// fiber may be about to park. So do stacks beyond the first 24 000, because each takes two of the
// process's mappings with its guard. Signal handlers may call it.
void make_core_small(const void* kept) noexcept;

// The stack on which the handler runs. Every worker thread needs such a stack, because its fiber's
// stack has no room. If the system refuses it, an overflow still ends the process, but without the
// report.
class SignalStack {
 public:
  SignalStack() noexcept;
  ~SignalStack();
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  void* memory_;
};

}  // namespace weft::fibers

// Reports the overflow of a fiber's stack.
#pragma once

#include "fibers/stack_space.hpp"

namespace weft::fibers {

// Installs the SIGSEGV and SIGBUS handler, once per process, and keeps the library loaded. For a
// fault in a fiber's guard, the handler writes `fiber 17 'name' overflowed its 64 KiB stack`, and
// the fiber's callable, spawn and innermost 20 calls. Then it passes every fault to the handler
// that was installed before; if the earlier handler returns from an overflow, the process ends.
// Before the signal's default effect ends the process, make_core_small() runs. Throws
// std::system_error.
void install_overflow_report();

// Registers the space with the handler. The handler has room for 64 spaces, and does not report
// overflows in further spaces.
void watch_for_overflow(const StackSpace& space) noexcept;
void unwatch_for_overflow(const StackSpace& space) noexcept;

// Excludes from the core file the parts of stacks that no fiber uses, in the registered spaces.
// Call it before the process ends with a core file. The stack with the address `kept` stays whole,
// because its fiber may be about to park. Stacks beyond the first 24 000 also stay whole, because
// each stack with its guard takes two of the process's mappings. Signal handlers may call it.
void make_core_small(const void* kept) noexcept;

// The stack on which the handler runs. Every worker thread needs such a stack, because the
// overflowed stack has no room. If the system refuses the stack, an overflow still ends the
// process, but without the report.
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

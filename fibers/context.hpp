// Declares the bare switch between two stacks. Two backends have the same names and pass the same
// tests; the build option `context` selects one, and docs/decisions/0006-the-switch.md has the
// reasons.
//   Context       The saved registers of a stack that is not running; null if there are none.
//   Arrival       The arguments of the code that a jump resumes: the context `fctx` of the stack
//                 that was left, and the pointer `data` that the jump passed.
//   make_context  Prepares a stack of `size` bytes that grows down from `top`. The first jump there
//                 calls `entry`, which never returns.
//   jump          Saves the caller's registers and resumes `to`. It may return on another thread,
//                 so keep no address of a thread_local across it. The caller may pass memory in
//                 its own frame for the saved registers.
//   jump_on_top   Does the same as jump, but first calls `visitor` on the stack of `to`, as if the
//                 code that left that stack had called it. The jump of that code then returns
//                 what the visitor returns.
//   end_of        Returns the end of the used part of a saved context's stack.
//
// No context contains the floating-point control registers (rounding, traps), because they belong
// to the thread. Boost.Context saves them on x86-64, but no code may rely on this.
#pragma once

#include <cstddef>

namespace weft::fibers {

// The number of bytes that a compiler may use below the stack pointer.
inline constexpr std::size_t kRedZone = 128;

}  // namespace weft::fibers

#ifdef WEFT_CONTEXT_BOOST
#include "fibers/context_boost.hpp"
#else
#include "fibers/context_assembly.hpp"
#endif

// The bare switch between two stacks. Two backends have the same names and meet the same tests; the
// build option `context` chooses, and docs/decisions/0006-the-switch.md says why there are two.
//   Context       The saved registers of a stack that is not running; null when there are none.
//   Arrival       Handed to the other side: the context `fctx` that was left, and a pointer `data`
//                 from it.
//   make_context  Prepares a stack of `size` bytes that grows down from `top`; `entry`, which
//                 never returns, is called by the first jump there.
//   jump          Saves the caller's registers and resumes `to`. Returns when somebody resumes the
//                 caller, perhaps on another thread: nothing thread-local may be kept across it.
//   jump_on_top   As jump(), but calls `visitor` on the stack of `to` first, as if the one who has
//                 jumped away from there had called it: what it returns, should it return, is what
//                 that one gets.
//   end_of        The end of what is in use on the stack of a saved context.
//
// The floating-point control registers (rounding, traps) are in no context: they belong to the
// thread. Boost.Context happens to save them, on x86-64, but no code may rely on it.
#pragma once

#include <cstddef>

namespace weft::fibers {

// Bytes that a compiler may use below the stack pointer.
inline constexpr std::size_t kRedZone = 128;

}  // namespace weft::fibers

#ifdef WEFT_CONTEXT_BOOST
#include "fibers/context_boost.hpp"
#else
#include "fibers/context_assembly.hpp"
#endif

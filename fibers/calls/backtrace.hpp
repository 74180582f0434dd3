// Returns the call stacks of fibers that are parked, and of the calling fiber.
#pragma once

#include <array>
#include <cstddef>

#include "fibers/stack.hpp"

namespace weft::fibers {

struct Backtrace {
  static constexpr std::size_t kMostFrames = 24;
  std::array<const void*, kMostFrames> frames{};  // Return addresses, innermost first.
  std::size_t count = 0;
};

// Switches to the stack of a parked fiber, and unwinds the stack there. No thread may resume the
// fiber meanwhile; the fiber's own code does not run. Returns an empty backtrace if the stack has
// too little room for an unwinder. Also returns an empty backtrace under a sanitizer, which cannot
// follow such a switch.
[[nodiscard]] Backtrace backtrace_of(Stack& parked) noexcept;

// Returns the call stack of the caller, which runs on the stack `here`; the first frame is in the
// caller itself. Returns an empty backtrace under a sanitizer, or if the stack has too little room
// for an unwinder.
[[nodiscard, gnu::noinline]] Backtrace calls_here(const Stack& here) noexcept;

}  // namespace weft::fibers

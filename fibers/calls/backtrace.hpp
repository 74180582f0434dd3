// The calls that a parked fiber is in.
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

// Visits the stack of a parked fiber, and unwinds the stack there. No thread may resume it
// meanwhile, and none of its own code runs. Returns an empty backtrace if too little of the stack
// is left for an unwinder, and under a sanitizer, which such a visit would confuse.
[[nodiscard]] Backtrace backtrace_of(Stack& parked) noexcept;

// Returns the calls of the caller, which runs on the stack `here`; the first frame is in the caller
// itself. Returns an empty backtrace if too little of the stack is left for an unwinder, and under
// a sanitizer.
[[nodiscard, gnu::noinline]] Backtrace calls_here(const Stack& here) noexcept;

}  // namespace weft::fibers

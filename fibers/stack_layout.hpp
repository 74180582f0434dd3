// Computes the size of a stack in its range, and the place of its header.
#pragma once

#include <cstddef>

#include "fibers/stack.hpp"
#include "fibers/stack_space.hpp"

namespace weft::fibers {

// extent() is the memory of a stack in bytes; stride() is the distance to the next stack.
constexpr std::size_t extent(unsigned size_class) noexcept {
  return stack_bytes(size_class) + kInlineBytes;
}
constexpr std::size_t stride(unsigned size_class) noexcept {
  return extent(size_class) + kGuardBytes;
}

// Stacks start at slightly different offsets in their pages. With the same offset for all stacks,
// the busiest lines of every stack would compete for a few sets of the first-level cache.
constexpr std::size_t color(std::size_t index) noexcept { return (index % 8) * 128; }

// `start` is the lowest address of the guard.
inline char* top_of(char* start, unsigned size_class) noexcept {
  return start + stride(size_class);
}
inline Stack* header_of(char* start, unsigned size_class, std::size_t index) noexcept {
  constexpr std::size_t kHeader = (sizeof(Stack) + 63) / 64 * 64;
  return reinterpret_cast<Stack*>(top_of(start, size_class) - color(index) - kHeader);
}

}  // namespace weft::fibers

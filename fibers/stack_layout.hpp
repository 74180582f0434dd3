// The size of a stack in its range.
#pragma once

#include <cstddef>

#include "fibers/stack.hpp"
#include "fibers/stack_space.hpp"

namespace weft::fibers {

// The memory of a stack, and the distance to the next one.
constexpr std::size_t extent(unsigned size_class) noexcept {
  return stack_bytes(size_class) + kInlineBytes;
}
constexpr std::size_t stride(unsigned size_class) noexcept {
  return extent(size_class) + kGuardBytes;
}

}  // namespace weft::fibers

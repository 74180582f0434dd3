// Measures the free space of a fiber's stack.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::detail {

struct StackRoom {
  std::size_t size = 0;  // The size of the fiber's stack; 0 on a plain thread.
  std::size_t left = SIZE_MAX;
};

// Returns the free space of the caller's stack.
[[nodiscard]] StackRoom stack_room() noexcept;

}  // namespace weft::detail

// How much of its stack a fiber has left.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::detail {

struct StackRoom {
  std::size_t size = 0;  // As SpawnOptions::stack_size; 0 of a plain thread.
  std::size_t left = SIZE_MAX;
};

// Of the caller.
[[nodiscard]] StackRoom stack_room() noexcept;

}  // namespace weft::detail

// Small blocks of memory, for what lives as briefly as a fiber.
#pragma once

#include <cstddef>
#include <new>

namespace weft::detail {

// As operator new and operator delete, for memory that is small and short-lived: a worker keeps
// some for the next time. Memory that one thread has allocated may be freed by another. Throws
// std::bad_alloc.
[[nodiscard]] void* allocate_small(std::size_t bytes);
void free_small(void* memory, std::size_t bytes) noexcept;

// Objects of a class that is derived from this live there, if they are made by `new`.
struct SmallBlock {
  static void* operator new(std::size_t bytes) { return allocate_small(bytes); }
  static void operator delete(void* memory, std::size_t bytes) noexcept {
    free_small(memory, bytes);
  }
  // Of a class that asks for more alignment.
  static void* operator new(std::size_t bytes, std::align_val_t alignment) {
    return ::operator new(bytes, alignment);
  }
  static void operator delete(void* memory, std::align_val_t alignment) noexcept {
    ::operator delete(memory, alignment);
  }
};

}  // namespace weft::detail

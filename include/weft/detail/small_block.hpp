// Allocates small blocks of memory for objects that are as short-lived as a fiber.
#pragma once

#include <cstddef>
#include <new>

namespace weft::detail {

// Do the same as operator new and operator delete, for small and short-lived memory. Each worker
// keeps some free blocks for reuse. A thread may free memory that another thread has allocated.
// Throws std::bad_alloc.
[[nodiscard]] void* allocate_small(std::size_t bytes);
void free_small(void* memory, std::size_t bytes) noexcept;

// A base class whose `new` and `delete` call allocate_small() and free_small().
struct SmallBlock {
  static void* operator new(std::size_t bytes) { return allocate_small(bytes); }
  static void operator delete(void* memory, std::size_t bytes) noexcept {
    free_small(memory, bytes);
  }
  // The compiler calls this overload for a class with a larger alignment than the default.
  static void* operator new(std::size_t bytes, std::align_val_t alignment) {
    return ::operator new(bytes, alignment);
  }
  static void operator delete(void* memory, std::align_val_t alignment) noexcept {
    ::operator delete(memory, alignment);
  }
};

}  // namespace weft::detail

// Reads memory that another thread may unmap.
#pragma once

#include <cstddef>

namespace weft::base {

// Copies memory of this process through the kernel. Returns false, instead of a fault, if part of
// the memory cannot be read, or if the system refuses process_vm_readv. Sanitizers do not see the
// access. Another thread may write to the memory, so the caller must check what it has read.
[[nodiscard]] bool read_memory(const void* from, void* to, std::size_t bytes) noexcept;

}  // namespace weft::base

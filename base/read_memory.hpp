// Reads memory that another thread may unmap.
#pragma once

#include <cstddef>

namespace weft::base {

// Copies memory of this process through the kernel. Returns false, instead of a fault, if part of
// it cannot be read, or if the system refuses process_vm_readv. Sanitizers do not see it: another
// thread may write there, so the caller checks what it has read.
[[nodiscard]] bool read_memory(const void* from, void* to, std::size_t bytes) noexcept;

}  // namespace weft::base

// The memory that the system allows the process, and the limits that apply.
#pragma once

#include <cstddef>

namespace weft::base {

// Returns the bytes of address space that may still be reserved under RLIMIT_AS (ulimit -v); the
// largest number if there is no such limit.
[[nodiscard]] std::size_t address_space_left() noexcept;

// Returns the bytes of the process's memory that belong to no file; 0 if the system does not report
// it. The system reclaims pages of files by itself, so these do not count.
[[nodiscard]] std::size_t memory_in_use() noexcept;

// The largest number of mappings of a process (vm.max_map_count), and the present number of this
// process.
[[nodiscard]] std::size_t most_mappings() noexcept;
[[nodiscard]] std::size_t count_mappings() noexcept;

// Writes, with a terminating zero, which limit has probably been reached when the system refuses
// memory: `ulimit -v = 1000000 KiB`. Returns false, and an empty text, if no limit is set. It
// allocates nothing.
[[nodiscard]] bool name_memory_limit(char* text, std::size_t size) noexcept;

}  // namespace weft::base

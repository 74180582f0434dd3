// Reports the memory that the system allows the process, and the limits that apply.
#pragma once

#include <cstddef>

namespace weft::base {

// Returns the bytes of address space that the process may still reserve under RLIMIT_AS (ulimit
// -v); the largest number if the process has no such limit.
[[nodiscard]] std::size_t address_space_left() noexcept;

// Returns the bytes of the process's memory that belong to no file; 0 if the system does not report
// it. Pages of files do not count, because the system reclaims them by itself.
[[nodiscard]] std::size_t memory_in_use() noexcept;

// Return the maximum number of mappings of a process (vm.max_map_count), and the present number of
// mappings of this process.
[[nodiscard]] std::size_t most_mappings() noexcept;
[[nodiscard]] std::size_t count_mappings() noexcept;

// Writes the limit that has probably been reached when the system refuses memory, with a
// terminating zero: `ulimit -v = 1000000 KiB`. If no limit is set, writes an empty text and returns
// false. Allocates nothing.
[[nodiscard]] bool name_memory_limit(char* text, std::size_t size) noexcept;

}  // namespace weft::base

// How much memory the system lets the process have, and by what it limits it.
#pragma once

#include <cstddef>

namespace weft::base {

// Bytes of address space that may still be reserved under RLIMIT_AS (ulimit -v); all of them when
// there is no such limit.
[[nodiscard]] std::size_t address_space_left() noexcept;

// Bytes of memory of the process that no file has; 0 when the system does not tell. The system
// reclaims pages of files by itself, so these do not count.
[[nodiscard]] std::size_t memory_in_use() noexcept;

// Mappings that a process may have (vm.max_map_count), and that this one has.
[[nodiscard]] std::size_t most_mappings() noexcept;
[[nodiscard]] std::size_t count_mappings() noexcept;

// Writes, with an end, which limit has probably been met by somebody whom the system refuses
// memory: `ulimit -v = 1000000 KiB`. False, and an empty text, when no limit is set. Allocates
// nothing.
[[nodiscard]] bool name_memory_limit(char* text, std::size_t size) noexcept;

}  // namespace weft::base

// The parts of files that the system holds in its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>
#include <weft/until.hpp>

#include "io/attempt.hpp"

namespace weft::files {

using io::CallResult;

// Reads, or writes, what needs no waiting; EAGAIN if nothing does, or the file system cannot tell.
// An offset that no file reaches is the end for a read, and EFBIG for a write.
[[nodiscard]] CallResult read_now(int file, std::span<std::byte> buffer,
                                  std::uint64_t offset) noexcept;
[[nodiscard]] CallResult write_now(int file, std::span<const std::byte> data,
                                   std::uint64_t offset) noexcept;

// Returns whether the system holds this part of a file, up to a page more. True beyond the end of
// the file. The bytes are read for that, and dropped, some 20 us for 256 KiB: what is only counted
// (cachestat) may be on its way still, and on an overlay is counted elsewhere.
[[nodiscard]] bool is_cached_hint(int file, std::uint64_t offset, std::size_t size) noexcept;
// Makes it so, on a thread of file_group(). Parks. The descriptor may be closed meanwhile.
[[nodiscard]] std::error_code bring_in(int file, std::uint64_t offset, std::size_t size,
                                       const Until& until);

}  // namespace weft::files

// Finds out which parts of files are in the system's page cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>
#include <weft/until.hpp>

#include "io/attempt.hpp"

namespace weft::files {

using io::CallResult;

// Reads or writes the part that needs no waiting. Returns EAGAIN if there is no such part, or if
// the file system does not report it. At an offset that no file reaches, a read ends and a write
// returns EFBIG.
[[nodiscard]] CallResult read_now(int file, std::span<std::byte> buffer,
                                  std::uint64_t offset) noexcept;
[[nodiscard]] CallResult write_now(int file, std::span<const std::byte> data,
                                   std::uint64_t offset) noexcept;

// Returns whether the page cache has this part of a file and up to one page more; true beyond the
// end of the file. It reads the bytes and drops them, which takes some 20 us for 256 KiB. It does
// not use cachestat: its counts include pages that are still being read, and on an overlay concern
// another file.
[[nodiscard]] bool is_cached_hint(int file, std::uint64_t offset, std::size_t size) noexcept;
// Brings the part into the cache, on a thread of file_group(). The caller parks. The descriptor may
// be closed meanwhile.
[[nodiscard]] std::error_code bring_in(int file, std::uint64_t offset, std::size_t size,
                                       const Until& until);

}  // namespace weft::files

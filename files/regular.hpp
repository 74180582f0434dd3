// Regular files by their paths.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <string>
#include <string_view>
#include <system_error>

#include "io/attempt.hpp"

namespace weft::files {

using io::CallResult;

// How all are opened: without waiting for what is no regular file and so will be refused, as a pipe
// without a writer.
inline constexpr int kOpening = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

// invalid_argument for a path with a zero inside: the system would take what stands before it.
[[nodiscard]] std::error_code check_path(std::string_view path) noexcept;
// For a thread that may wait for a disk.
[[nodiscard]] CallResult open_waiting(const std::string& path, int flags, unsigned mode) noexcept;
[[nodiscard]] CallResult look_at(int file, struct stat& found) noexcept;
// Brings the data to the disk. For a thread that may wait for one.
[[nodiscard]] CallResult sync_data(int file) noexcept;
// The error for a mode (stat::st_mode) of no regular file: is_a_directory, operation_not_supported.
[[nodiscard]] std::error_code check_mode(unsigned mode) noexcept;
// The same for an open file.
[[nodiscard]] std::error_code check_kind(int file) noexcept;

}  // namespace weft::files

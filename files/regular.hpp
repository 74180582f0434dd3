// Opens regular files by their paths.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <string>
#include <string_view>
#include <system_error>

#include "io/attempt.hpp"

namespace weft::files {

using io::CallResult;

// The flags for every open. They do not wait for files that are refused afterwards, such as a pipe
// without a writer.
inline constexpr int kOpening = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

// Returns invalid_argument for a path with a zero byte, where the system would end the path.
[[nodiscard]] std::error_code check_path(std::string_view path) noexcept;
// It may wait for a disk: call it on a thread that may block.
[[nodiscard]] CallResult open_waiting(const std::string& path, int flags, unsigned mode) noexcept;
[[nodiscard]] CallResult look_at(int file, struct stat& found) noexcept;
// Brings the data to the disk: call it on a thread that may block.
[[nodiscard]] CallResult sync_data(int file) noexcept;
// Returns the error for a mode (stat::st_mode) other than a regular file's: is_a_directory or
// operation_not_supported.
[[nodiscard]] std::error_code check_mode(unsigned mode) noexcept;
// Does the same for an open file.
[[nodiscard]] std::error_code check_kind(int file) noexcept;

}  // namespace weft::files

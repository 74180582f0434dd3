// The system calls about paths: queries, and changes of names. They may wait for a disk: call them
// on a thread that may block.
#pragma once

#include <sys/stat.h>

#include <string>
#include <system_error>

#include "io/attempt.hpp"

namespace weft::files {

// Describes the file to which a path leads; follows symbolic links.
[[nodiscard]] io::CallResult look_at_path(const std::string& path, struct stat& found) noexcept;
// Describes a symbolic link itself.
[[nodiscard]] io::CallResult look_at_link(const std::string& path, struct stat& found) noexcept;
[[nodiscard]] io::CallResult rename_path(const std::string& from, const std::string& to) noexcept;
[[nodiscard]] io::CallResult make_directory(const std::string& path, mode_t mode) noexcept;
// Removes a file, a link or an empty directory.
[[nodiscard]] io::CallResult remove_path(const std::string& path) noexcept;
// Removes a file or an empty directory that the library has made, as far as that can be done.
void clean_up(const std::string& path) noexcept;
// Removes a path with all that is below it; a path that does not exist counts as removed. It
// follows no link, even if another process replaces a directory by a link meanwhile.
[[nodiscard]] std::error_code remove_tree(const std::string& path);

}  // namespace weft::files

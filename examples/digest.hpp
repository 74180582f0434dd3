// SHA-256 of files, and the lines in which sha256sum writes it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "folder.hpp"

namespace examples {

struct Digest {
  std::string hex;
  std::uint64_t bytes = 0;
};

// Opens the path and reads it to its end; blocks the thread meanwhile. An error for what is no
// regular file (any more). Needs about 70 KB of heap and little stack.
[[nodiscard]] std::pair<Digest, std::error_code> digest_of_file(const std::string& path,
                                                                Links links);

// The path with backslash, newline and carriage return written as \\, \n and \r.
[[nodiscard]] std::string escaped(std::string_view path);

// As sha256sum writes it, with the newline: two blanks between, and a backslash in front of the
// line if the path had to be escaped.
[[nodiscard]] std::string checksum_line(std::string_view hex, std::string_view path);

}  // namespace examples

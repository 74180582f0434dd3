// SHA-256 digests of files, and lines in the format of sha256sum.
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

// Opens the file and reads it to its end; blocks the thread meanwhile. Returns an error if the path
// is not, or no longer, a regular file. Needs about 70 KB of heap and little stack.
[[nodiscard]] std::pair<Digest, std::error_code> digest_of_file(const std::string& path,
                                                                Links links);

// Returns the path with backslash, newline and carriage return written as \\, \n and \r.
[[nodiscard]] std::string escaped(std::string_view path);

// Returns the line of sha256sum, with the newline: two blanks separate digest and path, and a
// backslash precedes the line if the path had to be escaped.
[[nodiscard]] std::string checksum_line(std::string_view hex, std::string_view path);

}  // namespace examples

// Reads text in UTF-8 character by character.
#pragma once

#include <string_view>

namespace weft::base {

// Removes the first character of `text`, which must not be empty, and returns that character.
// Returns U+FFFD for a byte that begins no character. Names that a program sets may contain such
// bytes, but every reader must accept the library's output.
[[nodiscard]] std::string_view take_character(std::string_view& text) noexcept;

}  // namespace weft::base

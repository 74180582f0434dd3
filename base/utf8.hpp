// Reads text in UTF-8 character by character.
#pragma once

#include <string_view>

namespace weft::base {

// Takes the first character off `text`, which must not be empty, and returns it. Returns U+FFFD for
// a byte that begins no character. Names that a program gives may contain such bytes, and every
// reader must accept the output.
[[nodiscard]] std::string_view take_character(std::string_view& text) noexcept;

}  // namespace weft::base

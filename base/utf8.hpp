// Text in UTF-8, character by character.
#pragma once

#include <string_view>

namespace weft::base {

// The first character of `text`, which is not empty; it is taken off. For a byte that begins none,
// as it may be in names that a program gives: U+FFFD, so that every reader takes what is written.
[[nodiscard]] std::string_view take_character(std::string_view& text) noexcept;

}  // namespace weft::base

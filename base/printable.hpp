// Text for terminals, which obey control characters.
#pragma once

#include <span>

namespace weft::base {

// Puts a question mark in the place of each control character, also of UTF-8's control characters
// beyond ASCII, U+0080 to U+009F. Text that is cut off may be anything. Call it from anywhere, in
// signal handlers too.
inline void make_printable(std::span<char> text) noexcept {
  unsigned char before = 0;
  for (char& character : text) {
    const auto code = static_cast<unsigned char>(character);
    const bool is_second_half = before == 0xC2 && code >= 0x80 && code < 0xA0;
    if (code < 0x20 || code == 0x7F || is_second_half) character = '?';
    before = code;
  }
}

}  // namespace weft::base

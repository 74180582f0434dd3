// Makes text safe for terminals by replacing control characters.
#pragma once

#include <span>

namespace weft::base {

// Replaces each control character by a question mark, including UTF-8's control characters beyond
// ASCII, U+0080 to U+009F. A text may end within a character. Any code may call it, even signal
// handlers.
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

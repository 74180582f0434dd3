// Text that goes into messages and logs, whatever its origin.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace weft::http {

// Puts a question mark in the place of each control character, which would begin another line of a
// log, or be obeyed by a terminal.
inline void make_printable(std::span<char> text) noexcept {
  unsigned char before = 0;
  for (char& character : text) {
    const auto code = static_cast<unsigned char>(character);
    // UTF-8 has U+0080 to U+009F, too.
    const bool is_second_half = before == 0xC2 && code >= 0x80 && code < 0xA0;
    if (code < 0x20 || code == 0x7F || is_second_half) character = '?';
    before = code;
  }
}

// A copy of the first 200 bytes. Throws std::bad_alloc.
[[nodiscard]] inline std::string printable(std::string_view text) {
  std::string copy(text.substr(0, 200));
  make_printable(copy);
  return copy;
}

}  // namespace weft::http

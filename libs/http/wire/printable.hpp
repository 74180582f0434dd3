// Makes untrusted text safe for messages and logs.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace weft::http {

// Replaces each control character with a question mark, because it could begin a new log line or
// send a command to a terminal.
inline void make_printable(std::span<char> text) noexcept {
  unsigned char before = 0;
  for (char& character : text) {
    const auto code = static_cast<unsigned char>(character);
    // UTF-8 encodes each of the control characters U+0080 to U+009F in two bytes.
    const bool is_second_half = before == 0xC2 && code >= 0x80 && code < 0xA0;
    if (code < 0x20 || code == 0x7F || is_second_half) character = '?';
    before = code;
  }
}

// Returns a printable copy of the first 200 bytes. Throws std::bad_alloc.
[[nodiscard]] inline std::string printable(std::string_view text) {
  std::string copy(text.substr(0, 200));
  make_printable(copy);
  return copy;
}

}  // namespace weft::http

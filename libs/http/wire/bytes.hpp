// Classifies bytes independently of the locale.
#pragma once

namespace weft::http {

[[nodiscard]] constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
// Returns whether the byte may appear in a header value; a control character may not, except the
// tab.
[[nodiscard]] constexpr bool is_value_char(char c) noexcept {
  return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
}
[[nodiscard]] constexpr char to_lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

}  // namespace weft::http

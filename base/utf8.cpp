#include "base/utf8.hpp"

#include <cstddef>
#include <utility>

namespace weft::base {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

bool is_continuation(unsigned char byte) { return (byte & 0xC0) == 0x80; }

// Returns how many bytes the character at the start of `text` has; 0 if `text` starts with no
// character. Overlong forms, surrogates and values above U+10FFFF are not characters.
std::size_t length_of_character(std::string_view text) {
  const auto at = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = at(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (!is_continuation(at(i))) return 0;
  }
  const unsigned char second = at(1);
  if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F)) return 0;
  if ((lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) return 0;
  return length;
}

}  // namespace

std::string_view take_character(std::string_view& text) noexcept {
  const std::size_t length = length_of_character(text);
  const std::string_view rest = text.substr(length == 0 ? 1 : length);
  const std::string_view taken = std::exchange(text, rest);
  return length == 0 ? kReplacement : taken.substr(0, length);
}

}  // namespace weft::base

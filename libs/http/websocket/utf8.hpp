// Validates UTF-8 text that arrives in parts.
#pragma once

#include <cstdint>
#include <string_view>

namespace weft::http {

// Validates UTF-8 (RFC 3629) across the parts of a text.
class Utf8Check {
 public:
  // Adds the next part. Returns false as soon as no further part can make the text valid UTF-8.
  [[nodiscard]] bool add(std::string_view part) noexcept;
  // Returns false if the text so far ends within a character.
  [[nodiscard]] bool is_complete() const noexcept { return left_ == 0; }

 private:
  [[nodiscard]] bool begin(std::uint8_t byte) noexcept;

  int left_ = 0;             // The number of bytes missing from the current character.
  std::uint8_t low_ = 0x80;  // The lowest allowed next byte.
  std::uint8_t high_ = 0xbf;
};

[[nodiscard]] inline bool is_utf8(std::string_view text) noexcept {
  Utf8Check check;
  return check.add(text) && check.is_complete();
}

}  // namespace weft::http

// A check of texts that come in parts.
#pragma once

#include <cstdint>
#include <string_view>

namespace weft::http {

// Follows UTF-8 (RFC 3629) from part to part.
class Utf8Check {
 public:
  // Returns false as soon as the text cannot be UTF-8, however it continues.
  [[nodiscard]] bool add(std::string_view part) noexcept;
  // Returns true if no character is incomplete.
  [[nodiscard]] bool is_complete() const noexcept { return left_ == 0; }

 private:
  [[nodiscard]] bool begin(std::uint8_t byte) noexcept;

  int left_ = 0;             // Bytes of the character that have not come.
  std::uint8_t low_ = 0x80;  // The bounds of the next one.
  std::uint8_t high_ = 0xbf;
};

[[nodiscard]] inline bool is_utf8(std::string_view text) noexcept {
  Utf8Check check;
  return check.add(text) && check.is_complete();
}

}  // namespace weft::http

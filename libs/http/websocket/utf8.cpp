#include "libs/http/websocket/utf8.hpp"

#include <cstring>

namespace weft::http {

bool Utf8Check::begin(std::uint8_t byte) noexcept {
  low_ = 0x80;
  high_ = 0xbf;
  if (byte < 0x80) return true;
  if (byte < 0xc2 || byte > 0xf4) return false;
  left_ = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
  // These bounds reject overlong forms, surrogates and values above U+10FFFF.
  if (byte == 0xe0) low_ = 0xa0;
  if (byte == 0xed) high_ = 0x9f;
  if (byte == 0xf0) low_ = 0x90;
  if (byte == 0xf4) high_ = 0x8f;
  return true;
}

bool Utf8Check::add(std::string_view part) noexcept {
  constexpr std::uint64_t kHighBits = 0x8080808080808080;
  for (std::size_t i = 0; i < part.size();) {
    std::uint64_t word = 0;
    if (left_ == 0 && part.size() - i >= sizeof word) {
      std::memcpy(&word, part.data() + i, sizeof word);
      if ((word & kHighBits) == 0) {
        i += sizeof word;
        continue;
      }
    }
    const auto byte = static_cast<std::uint8_t>(part[i++]);
    if (left_ == 0) {
      if (!begin(byte)) return false;
      continue;
    }
    if (byte < low_ || byte > high_) return false;
    low_ = 0x80;
    high_ = 0xbf;
    --left_;
  }
  return true;
}

}  // namespace weft::http

#include <string>
#include <string_view>
#include <weft/http/request.hpp>

namespace weft::http {

namespace {

int digit_of(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) return (c | 0x20) - 'a' + 10;
  return -1;
}

std::string decode(std::string_view text, char plus) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && digit_of(text[i + 1]) >= 0 &&
        digit_of(text[i + 2]) >= 0) {
      decoded += static_cast<char>(digit_of(text[i + 1]) * 16 + digit_of(text[i + 2]));
      i += 2;
    } else {
      decoded += text[i] == '+' ? plus : text[i];
    }
  }
  return decoded;
}

}  // namespace

std::string decode_query(std::string_view text) { return decode(text, ' '); }
std::string decode_path(std::string_view text) { return decode(text, '+'); }

}  // namespace weft::http

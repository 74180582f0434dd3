#include "libs/http/coding/accept_encoding.hpp"

#include "libs/http/wire/list_items.hpp"

namespace weft::http {

namespace {

// Parses "1", "0.5", "0.125" or "1.000". Returns -1 for any other string.
int parse_quality(std::string_view text) noexcept {
  if (text.empty() || text.size() > 5 || (text[0] != '0' && text[0] != '1')) return -1;
  int value = text[0] == '1' ? 1000 : 0;
  if (text.size() == 1) return value;
  if (text[1] != '.') return -1;
  int weight = 100;
  for (const char digit : text.substr(2)) {
    if (digit < '0' || digit > '9') return -1;
    value += (digit - '0') * weight;
    weight /= 10;
  }
  return value <= 1000 ? value : -1;
}

}  // namespace

bool next_item(std::string_view& rest, std::string_view& item) noexcept {
  while (!rest.empty()) {
    item = take_item(rest);
    if (!item.empty()) return true;
  }
  return false;
}

int quality_of(std::string_view item, std::string_view& name) noexcept {
  const std::size_t semicolon = item.find(';');
  name = trimmed(item.substr(0, semicolon));
  if (semicolon == std::string_view::npos) return 1000;
  const std::string_view parameter = trimmed(item.substr(semicolon + 1));
  if (parameter.size() < 2 || (parameter[0] != 'q' && parameter[0] != 'Q') || parameter[1] != '=') {
    return 0;
  }
  const int quality = parse_quality(parameter.substr(2));
  return quality < 0 ? 0 : quality;
}

bool accepts_gzip(std::span<const Header> headers) noexcept {
  int gzip = -1;
  int any = -1;
  // The quality of the unencoded form. If the client does not name this form, the client accepts
  // it, but prefers the encodings that it names.
  int identity = 0;
  for (const Header& header : headers) {
    if (!equal_tokens(header.name, "accept-encoding")) continue;
    std::string_view rest = header.value;
    std::string_view item;
    while (next_item(rest, item)) {
      std::string_view name;
      const int quality = quality_of(item, name);
      if (equal_tokens(name, "gzip") || equal_tokens(name, "x-gzip")) gzip = quality;
      if (equal_tokens(name, "identity")) identity = quality;
      if (name == "*") any = quality;
    }
  }
  const int wanted = gzip >= 0 ? gzip : any;
  return wanted > 0 && wanted >= identity;
}

}  // namespace weft::http

#include "libs/http/wire/authority.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "libs/http/wire/bytes.hpp"

namespace weft::http {

namespace {

bool is_hex(char c) noexcept { return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); }

bool is_unreserved(char c) noexcept {
  return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

// RFC 3986 also allows the comma, but a program could mistake it for a separator of hosts.
bool is_delimiter(char c) noexcept {
  return std::string_view("!$&'()*+;=").find(c) != std::string_view::npos;
}

bool is_name(std::string_view text) noexcept {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_unreserved(text[i]) || is_delimiter(text[i])) continue;
    if (text[i] != '%' || text.size() - i < 3 || !is_hex(text[i + 1]) || !is_hex(text[i + 2])) {
      return false;
    }
    i += 2;
  }
  return !text.empty();
}

bool is_v6_address(std::string_view text) noexcept {
  std::array<char, INET6_ADDRSTRLEN> copy{};
  if (text.size() >= copy.size()) return false;
  (void)text.copy(copy.data(), text.size());
  in6_addr address{};
  return text.find('\0') == std::string_view::npos &&
         ::inet_pton(AF_INET6, copy.data(), &address) == 1;
}

// Returns whether the text has the form "v1.address", which RFC 3986 reserves for future versions
// of IP.
bool is_future_address(std::string_view text) noexcept {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos || dot < 2 || (text[0] | 0x20) != 'v') return false;
  const std::string_view version = text.substr(1, dot - 1);
  const std::string_view address = text.substr(dot + 1);
  return std::all_of(version.begin(), version.end(), is_hex) && !address.empty() &&
         std::all_of(address.begin(), address.end(),
                     [](char c) { return is_unreserved(c) || is_delimiter(c) || c == ':'; });
}

// Parses the text between the brackets of an IP literal.
bool parse_literal(std::string_view text, Authority& parts) noexcept {
  const std::size_t percent = text.find('%');
  parts.is_literal = true;
  parts.host = text.substr(0, percent);
  if (percent == std::string_view::npos) {
    return is_v6_address(text) || is_future_address(text);
  }
  parts.zone = text.substr(percent + 1);
  // In a URL, the '%' before the zone must be encoded (RFC 6874), but many programs do not do this.
  if (parts.zone.size() > 2 && parts.zone.starts_with("25")) parts.zone.remove_prefix(2);
  return is_v6_address(parts.host) && !parts.zone.empty() &&
         std::all_of(parts.zone.begin(), parts.zone.end(), is_unreserved);
}

}  // namespace

bool parse_authority(std::string_view text, Authority& parts) noexcept {
  parts = {};
  std::size_t end = std::min(text.find(':'), text.size());
  if (text.starts_with('[')) {
    const std::size_t bracket = text.find(']');
    if (bracket == std::string_view::npos) return false;
    if (!parse_literal(text.substr(1, bracket - 1), parts)) return false;
    end = bracket + 1;
  } else {
    parts.host = text.substr(0, end);
    if (!is_name(parts.host)) return false;
  }
  const std::string_view rest = text.substr(end);
  if (rest.empty() || rest == ":") return true;  // "host:" is allowed.
  if (rest.front() != ':' || !std::all_of(rest.begin() + 1, rest.end(), is_digit)) return false;
  const char* const last = rest.data() + rest.size();
  return std::from_chars(rest.data() + 1, last, parts.port.emplace()).ec == std::errc();
}

bool is_host_value(std::string_view text) noexcept {
  Authority parts;
  return text.empty() || (parse_authority(text, parts) && parts.zone.empty());
}

}  // namespace weft::http

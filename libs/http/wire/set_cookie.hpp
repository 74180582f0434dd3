// Parses cookies in headers as a user agent does (RFC 6265bis, 5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft::http {

// The largest total size of a cookie's name and value.
inline constexpr std::size_t kMaxCookieBytes = 4096;

// The parts of a Set-Cookie header that decide whether a client keeps and sends the cookie.
struct SetCookie {
  std::string name;
  std::string value;
  // In lower case, without a leading dot; empty if only the host itself receives the cookie.
  std::string domain;
  std::string path;  // Empty for the default path.
  // In seconds, at most 400 days; below 1 if the cookie has expired.
  std::optional<std::int64_t> lifetime;
  bool secure = false;
};

// Parses the header; `now` is in seconds since 1970. Returns nothing if a user agent must ignore
// the header.
[[nodiscard]] std::optional<SetCookie> parse_set_cookie(std::string_view text, std::int64_t now);

// Parses a date by the tolerant rules of RFC 6265bis, 5.1.1, and converts it to seconds since 1970.
[[nodiscard]] std::optional<std::int64_t> parse_cookie_date(std::string_view text) noexcept;

// Returns whether a cookie has the attributes that a prefix of its name (__Secure- or __Host-)
// requires.
[[nodiscard]] bool keeps_prefix(std::string_view name, bool secure, bool host_and_root) noexcept;

}  // namespace weft::http

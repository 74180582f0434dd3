// Cookies in headers, as a user agent reads them (RFC 6265bis, 5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft::http {

// A name and a value together.
inline constexpr std::size_t kMaxCookieBytes = 4096;

// The parts of a Set-Cookie header that decide whether a client keeps and sends the cookie.
struct SetCookie {
  std::string name;
  std::string value;
  std::string domain;  // In small letters, without a leading dot; empty: the host alone.
  std::string path;    // Empty: the default.
  std::optional<std::int64_t> lifetime;  // Seconds from now, at most 400 days; below 1: it is over.
  bool secure = false;
};

// Takes the header apart; `now` is in seconds since 1970. Nothing: the header is ignored.
[[nodiscard]] std::optional<SetCookie> parse_set_cookie(std::string_view text, std::int64_t now);

// Seconds since 1970 by the tolerant rules of RFC 6265bis, 5.1.1.
[[nodiscard]] std::optional<std::int64_t> parse_cookie_date(std::string_view text) noexcept;

// Whether a cookie has the attributes that its name promises: __Secure-, __Host-.
[[nodiscard]] bool keeps_prefix(std::string_view name, bool secure, bool host_and_root) noexcept;

}  // namespace weft::http

// Where something is found in the web.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <weft/net/result.hpp>

namespace weft::http {

// An absolute URL of http or https, taken apart. A plain value.
struct Url {
  std::string scheme = "http";  // Or "https".
  std::string host;  // "example.org", "127.0.0.1", "::1", "fe80::1%eth0"; in small letters.
  std::uint16_t port = 80;
  std::string target = "/";  // The path and the query, as they are asked for; no fragment.

  // "https://example.org:8443/a?b#c". Errors: Errc::unsupported for another scheme,
  // Errc::malformed_url for everything else; a user and a password are refused, too, and so are
  // bytes that would have to be coded.
  static net::Result<Url> parse(std::string_view text);
  // The place to which a link, or a redirect, leads from here: "https://a/b", "//a/b", "/b", "b",
  // "?c". Blanks and bytes beyond ASCII become percent codes, as in browsers. Errors: as parse(),
  // also for a host with such bytes.
  [[nodiscard]] net::Result<Url> resolve(std::string_view link) const;

  // "example.org", "example.org:8080", "[::1]": what a Host header says. Without the scheme's own
  // port, and without the zone of an address, which only this machine knows.
  [[nodiscard]] std::string authority() const;
  // A text that parse() reads, with the zone.
  [[nodiscard]] std::string to_string() const;

  friend bool operator==(const Url& left, const Url& right) = default;
};

}  // namespace weft::http

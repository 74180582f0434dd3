// Parses and resolves URLs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <weft/net/result.hpp>

namespace weft::http {

// Holds the parts of an absolute http or https URL.
// Context: plain value.
struct Url {
  std::string scheme = "http";  // "http" or "https".
  std::string host;  // "example.org", "127.0.0.1", "::1", "fe80::1%eth0"; lowercase, except a zone.
  std::uint16_t port = 80;
  std::string target = "/";  // The path and the query as sent in a request; without the fragment.

  // Parses a URL such as "https://example.org:8443/a?b#c". A URL with a user or a password is
  // malformed, and so is one with spaces, control or non-ASCII characters before the fragment.
  // Errors: Errc::unsupported for another scheme before "://", otherwise Errc::malformed_url.
  static net::Result<Url> parse(std::string_view text);
  // Returns the target of a link or redirect at this URL: "https://a/b", "//a/b", "/b", "b", "?c".
  // Like browsers, percent-encodes spaces and non-ASCII bytes. A host with such bytes is malformed.
  // Errors: the same as for parse(); Errc::unsupported also for links such as "mailto:a@b".
  [[nodiscard]] net::Result<Url> resolve(std::string_view link) const;

  // Returns the value of a Host header: "example.org", "example.org:8080", "[::1]". The value omits
  // the scheme's default port, and an address's zone, which is local to this machine.
  [[nodiscard]] std::string authority() const;
  // Returns a string that parse() accepts, including an address's zone.
  [[nodiscard]] std::string to_string() const;

  friend bool operator==(const Url& left, const Url& right) = default;
};

}  // namespace weft::http

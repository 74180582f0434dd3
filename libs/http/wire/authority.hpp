// Parses the name of a server in a URL or a Host header.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace weft::http {

// Holds the parts of a server's name. All parts refer to the string that was parsed.
struct Authority {
  std::string_view host;    // The host, without brackets.
  bool is_literal = false;  // True if the host was in brackets.
  std::string_view zone;    // "eth0" in "[fe80::1%25eth0]"; empty for none.
  std::optional<std::uint16_t> port;
};

// Parses "host", "host:port", "[address]" or "[address%zone]:port" (RFC 3986, 3.2.2). Returns false
// for an empty host, an invalid percent code, brackets without an address, or a port that is not a
// number up to 65535. Also returns false if the text has a user name, or a comma, which would make
// it a list of hosts.
[[nodiscard]] bool parse_authority(std::string_view text, Authority& parts) noexcept;

// Returns whether `text` is a valid Host header value, which may be empty but has no zone (RFC
// 6874).
[[nodiscard]] bool is_host_value(std::string_view text) noexcept;

}  // namespace weft::http

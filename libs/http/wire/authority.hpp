// The part of a URL, or the value of a Host header, that names a server.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace weft::http {

// All texts are in the one that was parsed.
struct Authority {
  std::string_view host;    // An address in brackets comes without them.
  bool is_literal = false;  // The host was in brackets.
  std::string_view zone;    // "eth0" in "[fe80::1%25eth0]"; empty: there is none.
  std::optional<std::uint16_t> port;
};

// Takes "host", "host:port", "[address]" or "[address%zone]:port" apart (RFC 3986, 3.2.2). Returns
// false for what cannot be one: an empty host, broken percent codes, brackets without an address in
// them, a port that is no number up to 65535, a user, or a comma, which would make a list of it.
[[nodiscard]] bool parse_authority(std::string_view text, Authority& parts) noexcept;

// Whether `text` may be the value of a Host header, which has no zone (RFC 6874) and may be empty.
[[nodiscard]] bool is_host_value(std::string_view text) noexcept;

}  // namespace weft::http

// Lists the proxies in front of a server whose headers the server trusts.
#pragma once

#include <cstdint>
#include <weft/net/networks.hpp>

namespace weft::http {

// Selects the headers in which a proxy reports the client of a forwarded request.
enum class ForwardingHeaders : std::uint8_t {
  x_forwarded,  // X-Forwarded-For and X-Forwarded-Proto.
  forwarded,    // Forwarded (RFC 7239).
};

// Lists proxies that append the client's address to one kind of header, or set the header to it.
// The server ignores the other kind, because a proxy may forward one that a client has forged.
// Context: plain value.
struct TrustedProxies {
  net::Networks networks = {};
  ForwardingHeaders headers = ForwardingHeaders::x_forwarded;
};

}  // namespace weft::http

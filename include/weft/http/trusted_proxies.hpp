// Lists the proxies in front of a server, whose headers the server trusts.
#pragma once

#include <cstdint>
#include <weft/net/networks.hpp>

namespace weft::http {

// Selects the headers in which a proxy reports the client of a forwarded request.
enum class ForwardingHeaders : std::uint8_t {
  x_forwarded,  // X-Forwarded-For and X-Forwarded-Proto.
  forwarded,    // Forwarded (RFC 7239).
};

// Lists proxies that append their client's address to one kind of header, or replace this header.
// The server ignores the other kind of header, because a proxy may forward it unchanged.
// Context: plain value.
struct TrustedProxies {
  net::Networks networks = {};
  ForwardingHeaders headers = ForwardingHeaders::x_forwarded;
};

}  // namespace weft::http

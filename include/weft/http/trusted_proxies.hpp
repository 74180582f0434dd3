// The proxies in front of a server whose headers are trusted.
#pragma once

#include <cstdint>
#include <weft/net/networks.hpp>

namespace weft::http {

// The headers by which a proxy reports for which client it forwards a request.
enum class ForwardingHeaders : std::uint8_t {
  x_forwarded,  // X-Forwarded-For and X-Forwarded-Proto.
  forwarded,    // Forwarded (RFC 7239).
};

// Proxies that append the address of their client to these headers, or replace them. Headers of the
// other kind are not read, because a proxy may pass them on as its client has sent them.
// Context: plain value.
struct TrustedProxies {
  net::Networks networks = {};
  ForwardingHeaders headers = ForwardingHeaders::x_forwarded;
};

}  // namespace weft::http

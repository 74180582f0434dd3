// Finds the client of a request that trusted proxies have forwarded.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <weft/http/header.hpp>
#include <weft/http/trusted_proxies.hpp>
#include <weft/net/address.hpp>
#include <weft/net/result.hpp>

namespace weft::http {

// The client of a request.
struct ForwardedClient {
  // An error: the peer's, or address_not_available if a proxy does not tell the address.
  net::Result<net::Address> address;
  // "http" or "https"; empty if no trusted proxy tells it.
  std::string_view scheme = {};
};

// Follows the proxies from the peer to the client. Each item of the lists, from the last one on, is
// believed if the proxy that has added it is trusted: its own address is in the item behind it, or
// is the peer's. Throws std::bad_alloc.
[[nodiscard]] ForwardedClient find_client(std::span<const Header> headers,
                                          const net::Result<net::Address>& peer,
                                          const TrustedProxies& trusted);

}  // namespace weft::http

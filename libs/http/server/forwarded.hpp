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

// The client that has sent a request.
struct ForwardedClient {
  // Errors: the error of `peer` in find_client(); address_not_available if a proxy reports no
  // address.
  net::Result<net::Address> address;
  // "http" or "https"; empty if no trusted proxy reports it.
  std::string_view scheme = {};
};

// Follows the proxies from the peer to the client. Reads the headers' lists from the last item to
// the first, and uses an item if the proxy that added it is trusted. The peer added the last item.
// Each earlier item was added by the proxy whose address is in the item after it. Throws
// std::bad_alloc.
[[nodiscard]] ForwardedClient find_client(std::span<const Header> headers,
                                          const net::Result<net::Address>& peer,
                                          const TrustedProxies& trusted);

}  // namespace weft::http

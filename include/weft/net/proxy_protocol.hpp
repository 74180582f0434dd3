// Reads the PROXY protocol, versions 1 and 2, with which a proxy of TCP connections reports the
// client's address.
#pragma once

#include <chrono>
#include <optional>
#include <weft/net/address.hpp>
#include <weft/net/byte_stream.hpp>
#include <weft/net/networks.hpp>
#include <weft/net/result.hpp>
#include <weft/until.hpp>

namespace weft::net {

// Holds the header that a proxy sends at the beginning of a connection.
struct ProxyHeader {
  // The client's address. Empty if the proxy does not report the address, or made the connection
  // itself, for example for a health check.
  std::optional<Address> source = {};
  // The address to which the client has connected.
  std::optional<Address> destination = {};
  // Whether the client uses TLS, which ends at the proxy; only version 2 reports it (PP2_TYPE_SSL).
  bool is_secure = false;
};

// Selects the connections to a server that must begin with a PROXY header.
struct ProxyProtocol {
  // The addresses of the proxies. A proxy's connection without a valid header is closed.
  // Connections of other peers have no header; their first bytes belong to the server's protocol.
  Networks networks = {};
  // The time within which the whole header must arrive.
  std::chrono::nanoseconds wait = std::chrono::seconds(10);
};

// Reads the header of a connection, and no byte beyond it. A header of version 2 may have up to 4
// KiB after its first 16 bytes; the call uses only the extension PP2_TYPE_SSL. A server with
// proxy_protocol makes this call itself. Call it only for trusted peers: any client can send one.
// Context: fibers and plain threads; parks.
// Errors: std::errc::protocol_error without a valid header; errors of ByteStream::read_some().
// Throws: std::bad_alloc.
[[nodiscard]] Result<ProxyHeader> read_proxy_header(ByteStream& stream,
                                                    const Until& until = Until::ambient());

}  // namespace weft::net

// Reads the PROXY protocol, versions 1 and 2, by which a TCP proxy reports the client's address.
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
  // The client's address. Empty if the proxy reports no IP address, or made the connection itself,
  // for example for a health check.
  std::optional<Address> source = {};
  // The address to which the client has connected.
  std::optional<Address> destination = {};
  // Whether the client connects to the proxy over TLS; only version 2 reports this (PP2_TYPE_SSL).
  bool is_secure = false;
};

// Selects which of a server's connections must begin with a PROXY header.
struct ProxyProtocol {
  // The networks of trusted proxies. A proxy's connection is refused if it lacks a valid header.
  // Connections from other peers have no header: their first bytes belong to the server's protocol.
  Networks networks = {};
  // The time within which the whole header must arrive.
  std::chrono::nanoseconds wait = std::chrono::seconds(10);
};

// Reads the header of a connection, and no byte beyond it. A version 2 header may have up to 4 KiB
// after its first 16 bytes; all extensions other than PP2_TYPE_SSL are ignored. A server with
// proxy_protocol set makes this call itself. Any client can send a header, so call
// read_proxy_header() only for trusted peers.
// Context: fibers and plain threads; parks.
// Errors: std::errc::protocol_error if there is no valid header; errors of ByteStream::read_some().
// Throws: std::bad_alloc.
[[nodiscard]] Result<ProxyHeader> read_proxy_header(ByteStream& stream,
                                                    const Until& until = Until::ambient());

}  // namespace weft::net

// Provides the calls with which a proxy forwards a request to another server and returns its
// response to the client.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <weft/http/client.hpp>
#include <weft/http/request.hpp>
#include <weft/http/response.hpp>
#include <weft/net/result.hpp>
#include <weft/until.hpp>

namespace weft::http {

struct ForwardOptions {
  // The scheme by which clients reach the proxy, for X-Forwarded-Proto and Forwarded. If empty,
  // the scheme of the client's connection is used.
  std::string scheme = {};
  // If true, the client is a trusted proxy. The headers Forwarded and X-Forwarded-For, -Host and
  // -Proto of its request are kept, and an entry is appended to X-Forwarded-For and Forwarded. If
  // false, these headers are replaced, except the headers for which the server trusts the client
  // (Request::trusted_headers()).
  bool trusts_client = false;
  // The layer for upgraded connections to https origins, such as tls::client_layer(context).
  // If it is empty, an upgrade at an https origin fails with Errc::unsupported.
  ClientLayer secure = {};
};

// Returns whether a header concerns one connection only, and is not forwarded: Connection,
// Keep-Alive, Proxy-Authenticate, Proxy-Authorization, Proxy-Connection, TE, Trailer,
// Transfer-Encoding, Upgrade, and the headers that a Connection header in `headers` lists.
// Context: plain value.
[[nodiscard]] bool is_hop_by_hop(std::span<const Header> headers, std::string_view name) noexcept;

// Returns a call that forwards a request to `origin`, such as "http://127.0.0.1:9000". The call has
// the request's method, target, Host and end-to-end headers; Via, Forwarded, X-Forwarded-For,
// X-Forwarded-Host and X-Forwarded-Proto are added. Its `body_source` reads the request's body, so
// the request must outlive the call. The body is sent in chunks; trailers are dropped. The
// http::Client that performs the call should have max_redirects = 0 and no cookies.
// Context: the request's handler; does not park.
// Throws: std::bad_alloc.
[[nodiscard]] Call forward_call(Request& request, std::string_view origin,
                                const ForwardOptions& options = {});

// Sends a reply as the response: its status, its end-to-end headers except Date, and its body as
// it arrives. A body whose size is known to be at most 16 KiB is read completely before the
// response starts. For a decompressed body, the headers that describe the compressed bytes are left
// out, and the ETag becomes weak. If the reply fails, a response that has started ends early.
// Context: the request's handler; parks.
// Errors: errors of Reply::read_some() and Response::write(); malformed_start for a status > 599.
// While Response::started() is false, the response is unchanged, and the handler can still respond.
// Throws: std::bad_alloc.
net::Result<void> forward_reply(Reply& reply, Response& response,
                                const Until& until = Until::ambient());

// Returns whether the request has no body and requests another protocol, such as WebSocket. Returns
// false for HTTP/2 (h2c), whose later requests would bypass the proxy.
// Context: the request's handler; does not park.
[[nodiscard]] bool asks_for_upgrade(const Request& request) noexcept;
// Forwards an upgrade request to `origin`, on a separate connection. After 101, relays bytes in
// both directions until both ends have closed, one end fails or the server stops. Passes on any
// other final response as it arrives. `until` limits the call, but not the relay.
// Context: the request's handler; parks.
// Errors: Errc::unsupported if asks_for_upgrade() is false or the options do not support the
// scheme; Errc::already_started; the codes of Client::send() for an invalid response; the errors of
// net::dial(), the TLS layer and the stream. The handler can respond if Response::started() is
// false.
// Throws: std::bad_alloc; the call and the relay also throw whatever spawn() throws.
[[nodiscard]] net::Result<void> forward_upgrade(Request& request, Response& response,
                                                std::string_view origin,
                                                const ForwardOptions& options = {},
                                                const Until& until = Until::ambient());

}  // namespace weft::http

// Represents a client's request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <weft/context.hpp>
#include <weft/http/header.hpp>
#include <weft/http/limits.hpp>
#include <weft/http/trusted_proxies.hpp>
#include <weft/net/address.hpp>
#include <weft/net/result.hpp>
#include <weft/net/tls_info.hpp>

namespace weft::http {

class Exchange;
class Router;

// Lets a handler access a request. The object and returned views are valid until the handler ends.
// Context: one fiber at a time; reads of the body park.
// Throws: std::bad_alloc; context() and all later reads of the body also throw what go() throws.
class Request {
 public:
  // Makes a Request that refers to the server's exchange.
  explicit Request(Exchange& exchange) noexcept : exchange_(exchange) {}
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  // Returns the method, such as "GET", exactly as the client sent it.
  [[nodiscard]] std::string_view method() const noexcept;
  // Returns the target as requested: "/a%20b?c=d", "http://host/a%20b?c=d" or "*".
  [[nodiscard]] std::string_view target() const noexcept;
  // Returns the target's path, not decoded, without scheme, host and query; "/" if it is empty.
  [[nodiscard]] std::string_view path() const noexcept;
  // Returns the part of the target after the question mark, not decoded; possibly empty.
  [[nodiscard]] std::string_view query() const noexcept;
  // Returns the first value of `name` in the query, decoded.
  [[nodiscard]] std::optional<std::string> query_value(std::string_view name) const;
  // Returns the decoded values of all query parameters called `name`, in order of appearance.
  [[nodiscard]] std::vector<std::string> query_values(std::string_view name) const;
  // Returns 1 for HTTP/1.1 and later 1.x versions, and 0 for HTTP/1.0.
  [[nodiscard]] int minor_version() const noexcept;

  // Returns the headers in the order of arrival.
  [[nodiscard]] std::span<const Header> headers() const noexcept;
  // Returns the value of the first header with this name.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const noexcept;
  // Returns the host and any port, from the target or else from the Host header; possibly empty.
  [[nodiscard]] std::string_view host() const noexcept;

  // Returns the decoded part of the path that matched `{name}`; empty without such a parameter.
  [[nodiscard]] std::string parameter(std::string_view name) const;
  // Returns the decoded value of the last parameter: for the route "/static/{file...}", the path
  // after "/static/". Without parameters, returns the path after its first slash.
  [[nodiscard]] std::string rest_of_path() const;
  // Adds a path parameter. The name and the value must outlive the request.
  void add_parameter(std::string_view name, std::string_view value);

  // Returns the size of the body; empty if the body is sent in chunks.
  [[nodiscard]] std::optional<std::uint64_t> content_length() const noexcept;
  // Returns whether there is a body, even an empty one.
  [[nodiscard]] bool has_body() const noexcept;
  // Reads at least one byte of the body. If the client waits for "100 Continue" and no response has
  // begun, sends 100 first. weft::Errc::end_of_stream reports the end of the body. Any other error
  // closes the connection; unless the handler responds, the client gets 400, 408, 413 or 431.
  // Errors: the codes of http::Errc; weft::Errc::timed_out (Limits::body); errors of the stream.
  net::Result<std::size_t> read_some(std::span<std::byte> buffer);
  // Reads the whole body, at most Limits::body_bytes. After an error, `value` contains the bytes
  // that were read before it.
  net::Result<std::string> read_all();
  // Returns the headers after the last chunk; empty before the body's end has been read.
  [[nodiscard]] std::span<const Header> trailers() const noexcept;

  // Replaces the server's limits for this request; see limited(). For a body above the limit,
  // read_some() returns Errc::body_too_large. Call set_limits() before reading the body. If
  // a context exists already, later calls to context() return a child with the new time limit.
  void set_limits(const RequestLimits& limits);

  // Returns the context (context.hpp) of this request, in which the request's handler runs. It ends
  // with Errc::timed_out when Limits::request has passed since the end of the head. It ends with
  // Errc::cancelled if the client disconnects or the server's grace period ends. The first use
  // creates the context. A client that shuts down its sending side counts as disconnected. Until
  // the body has been read, only reads report a disconnect.
  [[nodiscard]] Context& context();

  // Returns the client's address as trusted proxies report it (ServerOptions::trusted_proxies), or
  // else peer_address(). The port is 0 if the proxies report no port.
  // Errors: errors of peer_address(); address_not_available if a proxy reports no IP address.
  [[nodiscard]] net::Result<net::Address> client_address() const;
  // Returns the scheme of the client's request, "http" or "https": the scheme that a trusted
  // proxy or a PROXY header reports, or else the connection's scheme.
  [[nodiscard]] std::string_view scheme() const;
  // Returns TrustedProxies::headers if the peer is a trusted proxy; otherwise, returns nothing.
  [[nodiscard]] std::optional<ForwardingHeaders> trusted_headers() const noexcept;
  // Returns the peer's address; the peer may be a proxy. If a PROXY header
  // (ServerOptions::proxy_protocol) contains a source address, returns that address instead.
  // Errors: address_family_not_supported for a Unix socket; weft::Errc::closed; system errors.
  [[nodiscard]] net::Result<net::Address> peer_address() const noexcept;
  // Returns the connection's TLS data, with the client's certificate if the client has sent one;
  // empty for a plain connection. Each call makes a copy.
  [[nodiscard]] std::optional<net::TlsInfo> tls() const;

 private:
  friend class Router;
  // Records the index of the route that serves the request (RouteIndex).
  void set_route(std::uint16_t index) noexcept;

  Exchange& exchange_;
};

// Decodes a string from a query: "%41+b" becomes "A b" (plus is a space). Keeps invalid encodings.
// Context: plain value.
[[nodiscard]] std::string decode_query(std::string_view text);
// Decodes a string from a path: "%41+b" becomes "A+b". Keeps invalid encodings.
// Context: plain value.
[[nodiscard]] std::string decode_path(std::string_view text);

}  // namespace weft::http

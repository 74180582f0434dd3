// Represents the request of a client.
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

// Gives a handler access to a request. The object and returned texts live until the handler ends.
// Context: one fiber at a time; reads of the body park.
// Throws: std::bad_alloc; context(), and reads after its first call, also whatever go() throws.
class Request {
 public:
  // Makes a Request that refers to the server's exchange.
  explicit Request(Exchange& exchange) noexcept : exchange_(exchange) {}
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  // Returns the method, such as "GET", in the case that the client used.
  [[nodiscard]] std::string_view method() const noexcept;
  // Returns the target as requested: "/a%20b?c=d", "http://host/a%20b?c=d" or "*".
  [[nodiscard]] std::string_view target() const noexcept;
  // Returns the target's path, without scheme, host and query, not decoded; "/" if it is empty.
  [[nodiscard]] std::string_view path() const noexcept;
  // Returns the part of the target after the question mark, not decoded; possibly empty.
  [[nodiscard]] std::string_view query() const noexcept;
  // Returns the first value of `name` in the query, decoded.
  [[nodiscard]] std::optional<std::string> query_value(std::string_view name) const;
  // Returns all values of `name` in the query, in their order, decoded.
  [[nodiscard]] std::vector<std::string> query_values(std::string_view name) const;
  // Returns 1 for HTTP/1.1 and later versions 1.x, 0 for HTTP/1.0.
  [[nodiscard]] int minor_version() const noexcept;

  // Returns the headers in the order of arrival.
  [[nodiscard]] std::span<const Header> headers() const noexcept;
  // Returns the first header of this name.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const noexcept;
  // Returns the host in the target, or else in the Host header; possibly empty in HTTP/1.0.
  [[nodiscard]] std::string_view host() const noexcept;

  // Returns the part that the router found for `{name}`, decoded; empty without such a parameter.
  [[nodiscard]] std::string parameter(std::string_view name) const;
  // Returns the value of the last parameter, decoded: for "/static/{file...}" the part after
  // "/static/". Without parameters, returns the path after its first slash.
  [[nodiscard]] std::string rest_of_path() const;
  // Adds a path parameter. Its name and value must live as long as the request.
  void add_parameter(std::string_view name, std::string_view value);

  // Returns the size of the body; nothing if the body is sent in chunks.
  [[nodiscard]] std::optional<std::uint64_t> content_length() const noexcept;
  // Returns whether there is a body, even an empty one.
  [[nodiscard]] bool has_body() const noexcept;
  // Reads at least one byte of the body. If the client waits for "100 Continue" and no answer has
  // begun, sends it first. weft::Errc::end_of_stream reports the end of the body. Any other error
  // closes the connection; if the handler does not answer, the answer is 400, 408, 413 or 431.
  // Errors: the codes of http::Errc; weft::Errc::timed_out (Limits::body); errors of the system.
  net::Result<std::size_t> read_some(std::span<std::byte> buffer);
  // Reads the whole body, at most Limits::body_bytes. After an error, `value` is the part that was
  // read.
  net::Result<std::string> read_all();
  // Returns the headers after the last chunk; empty before the body's end has been read.
  [[nodiscard]] std::span<const Header> trailers() const noexcept;

  // Replaces the server's limits for this request; see limited(). For a larger body, read_some()
  // returns Errc::body_too_large. Call set_limits() before the body is read. If context() was
  // called before, later calls return a child that also ends at the new limit.
  void set_limits(const RequestLimits& limits);

  // Returns the context of this request, which is the context of the handler's calls (context.hpp).
  // The context ends with Errc::timed_out when Limits::request has passed since the end of the
  // head, and with Errc::cancelled if the client disconnects or the server's grace period ends. The
  // first call creates it. Once the body has been read, the server detects a disconnect; until
  // then, reads report it.
  [[nodiscard]] Context& context();

  // Returns the client's address, as trusted proxies report it (ServerOptions::trusted_proxies),
  // otherwise peer_address(). The port is 0 if the proxies report no port.
  // Errors: std::errc::address_not_available if a proxy reports no client; as for peer_address().
  [[nodiscard]] net::Result<net::Address> client_address() const;
  // Returns the scheme by which the client sent its request, "http" or "https": the scheme that
  // trusted proxies report, otherwise the scheme of the connection.
  [[nodiscard]] std::string_view scheme() const;
  // Returns which forwarding headers the peer has written, if the peer is a trusted proxy.
  [[nodiscard]] std::optional<ForwardingHeaders> trusted_headers() const noexcept;
  // Returns the address of the connection's other end, which may be a proxy. If a PROXY header
  // (ServerOptions::proxy_protocol) has a source address, returns that address.
  // Errors: std::errc::address_family_not_supported for a Unix socket; errors of the system.
  [[nodiscard]] net::Result<net::Address> peer_address() const noexcept;
  // Returns the TLS data of the connection, with the client's certificate if the client has sent
  // one; nothing for a plain connection. Each call makes a copy.
  [[nodiscard]] std::optional<net::TlsInfo> tls() const;

 private:
  friend class Router;
  // Records the index of the route that serves the request (RouteIndex).
  void set_route(std::uint16_t index) noexcept;

  Exchange& exchange_;
};

// Decodes a text from a query, "%41+b" to "A b": a plus means a space. Keeps incorrect encodings.
// Context: plain value.
[[nodiscard]] std::string decode_query(std::string_view text);
// Decodes a text from a path, "%41+b" to "A+b". Keeps incorrect encodings.
// Context: plain value.
[[nodiscard]] std::string decode_path(std::string_view text);

}  // namespace weft::http

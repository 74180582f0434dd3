// The request of a client.
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

// A request; its body is read on demand. It and its texts live until the handler returns.
// Context: one fiber at a time; reads of the body park.
// Throws: std::bad_alloc; context(), and reads after its first use, also as go().
class Request {
 public:
  // Refers to the server's exchange.
  explicit Request(Exchange& exchange) noexcept : exchange_(exchange) {}
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  // Returns the method, "GET", in the client's case.
  [[nodiscard]] std::string_view method() const noexcept;
  // Returns the target as requested: "/a%20b?c=d", "http://host/a%20b?c=d" or "*".
  [[nodiscard]] std::string_view target() const noexcept;
  // Returns the target before the question mark, not decoded; "/" if there is none.
  [[nodiscard]] std::string_view path() const noexcept;
  // Returns the part after the question mark, not decoded; it may be empty.
  [[nodiscard]] std::string_view query() const noexcept;
  // Returns the first value of `name` in the query, decoded.
  [[nodiscard]] std::optional<std::string> query_value(std::string_view name) const;
  // Returns all values of `name` in the query, in their order, decoded.
  [[nodiscard]] std::vector<std::string> query_values(std::string_view name) const;
  // Returns 1 for HTTP/1.1, 0 for HTTP/1.0.
  [[nodiscard]] int minor_version() const noexcept;

  // Returns the headers in the order of arrival.
  [[nodiscard]] std::span<const Header> headers() const noexcept;
  // Returns the first header of this name.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const noexcept;
  // Returns the host of the target, or otherwise of the Host header; it may be empty in HTTP/1.0.
  [[nodiscard]] std::string_view host() const noexcept;

  // Returns the part that the router found for `{name}`, decoded; empty without such a parameter.
  [[nodiscard]] std::string parameter(std::string_view name) const;
  // Returns the value of the last parameter, decoded: for "/static/{file...}" the part after
  // "/static/". Without parameters it is the path after its first slash.
  [[nodiscard]] std::string rest_of_path() const;
  // Adds a parameter of the router. Its name and value must live as long as the request.
  void add_parameter(std::string_view name, std::string_view value);

  // Returns the size of the body, unless it comes in chunks.
  [[nodiscard]] std::optional<std::uint64_t> content_length() const noexcept;
  // Returns whether there is a body, even an empty one.
  [[nodiscard]] bool has_body() const noexcept;
  // Reads at least one byte of the body. It first requests the body if the client waits for that
  // (100-continue) and no answer has begun. weft::Errc::end_of_stream: its end. Another error
  // closes the connection, with 400, 408 or 413 unless the handler answers.
  // Errors: also http::Errc's, weft::Errc::timed_out (Limits::body), the system's.
  net::Result<std::size_t> read_some(std::span<std::byte> buffer);
  // Reads the whole body, at most Limits::body_bytes. After an error `value` is the part read so
  // far.
  net::Result<std::string> read_all();
  // Returns the headers after the last chunk; empty before the body's end has been read.
  [[nodiscard]] std::span<const Header> trailers() const noexcept;

  // Replaces the server's limits for this request: see limited(). A larger body is an error of
  // read_some(), Errc::body_too_large. Call it before the body is read. If context() was used
  // before, it now returns a child of the old context, which ends at the new limit at the latest.
  void set_limits(const RequestLimits& limits);

  // Returns the scope of this request, which is the context of the handler's calls (context.hpp).
  // It ends with Errc::timed_out at Limits::request after the head, and with Errc::cancelled if the
  // client hangs up or the server's grace ends. It is made at its first use. A hang-up is noticed
  // once the body has been read; before that, it is an error of the next read.
  [[nodiscard]] Context& context();

  // Returns the client's address, as the trusted proxies report it
  // (ServerOptions::trusted_proxies), otherwise peer_address(). The port is 0 if they report none.
  // Errors: std::errc::address_not_available if a proxy reports no client; as peer_address().
  [[nodiscard]] net::Result<net::Address> client_address() const;
  // Returns the scheme by which the client sent its request, "http" or "https": as the trusted
  // proxies report it, otherwise the scheme of the connection.
  [[nodiscard]] std::string_view scheme() const;
  // Returns which headers the other end has written, if it is a trusted proxy.
  [[nodiscard]] std::optional<ForwardingHeaders> trusted_headers() const noexcept;
  // Returns the address of the other end, which may be a proxy. It is the source in a PROXY header
  // (ServerOptions::proxy_protocol), if there is one.
  // Errors: std::errc::address_family_not_supported for a Unix socket; the system's.
  [[nodiscard]] net::Result<net::Address> peer_address() const noexcept;
  // Returns the data of the connection's TLS, with the client's certificate if the client has sent
  // it; nothing for a plain connection. Each call makes a copy.
  [[nodiscard]] std::optional<net::TlsInfo> tls() const;

 private:
  friend class Router;
  // Records the number of the route's title.
  void set_route(std::uint16_t index) noexcept;

  Exchange& exchange_;
};

// Decodes "%41+b" in a query to "A b", where a plus is a blank; keeps incorrect encodings.
// Context: plain value.
[[nodiscard]] std::string decode_query(std::string_view text);
// Decodes "%41+b" in a path to "A+b", in the same way.
// Context: plain value.
[[nodiscard]] std::string decode_path(std::string_view text);

}  // namespace weft::http

// The request of a client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <weft/context.hpp>
#include <weft/http/header.hpp>
#include <weft/net/address.hpp>
#include <weft/net/result.hpp>

namespace weft::http {

class Exchange;

// A request, as its handler sees it: the head is there, the body comes as it is read. It lives
// until the handler returns, and so do all texts that it hands out. Used by one fiber at a time.
// Calls park, throw and synchronize where they say so.
class Request {
 public:
  // The server makes it.
  explicit Request(Exchange& exchange) noexcept : exchange_(exchange) {}
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  // "GET"; in the case in which the client wrote it.
  [[nodiscard]] std::string_view method() const noexcept;
  // As it was asked for, "/a%20b?c=d" or "http://host/a%20b?c=d" or "*".
  [[nodiscard]] std::string_view target() const noexcept;
  // The part of the target before the question mark, not decoded; "/" if there is none.
  [[nodiscard]] std::string_view path() const noexcept;
  // The part behind the question mark, not decoded; may be empty.
  [[nodiscard]] std::string_view query() const noexcept;
  // The first value of `name` in the query, decoded.
  [[nodiscard]] std::optional<std::string> query_value(std::string_view name) const;
  // 1 for HTTP/1.1, 0 for HTTP/1.0.
  [[nodiscard]] int minor_version() const noexcept;

  // In the order in which they came.
  [[nodiscard]] std::span<const Header> headers() const noexcept;
  // The first one of this name.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const noexcept;
  // The host that is asked: the target's if it names one, else the Host header; may be empty in
  // HTTP/1.0.
  [[nodiscard]] std::string_view host() const noexcept;

  // The part of the path that the router found for `{name}`, decoded; empty if there is no such
  // parameter.
  [[nodiscard]] std::string parameter(std::string_view name) const;
  // The value of the last parameter, whatever its name: of "/static/{file...}" what stands behind
  // "/static/". Without parameters: the path behind its first slash. Decoded.
  [[nodiscard]] std::string rest_of_path() const;
  // A router calls it, with a name and a value that live as long as the request.
  void add_parameter(std::string_view name, std::string_view value);

  // Known before the body is read, unless it comes in chunks.
  [[nodiscard]] std::optional<std::uint64_t> content_length() const noexcept;
  // Whether there is a body, be it empty.
  [[nodiscard]] bool has_body() const noexcept;
  // Reads what there is of the body, at least one byte; asks for it first if the client waits for
  // that (100-continue) and the answer has not begun. Parks. At its end: weft::Errc::end_of_stream.
  // Other errors: http::Errc's, weft::Errc::timed_out (Limits::body), the system's. After an error
  // the connection is closed, and if the handler has not answered, 400, 408 or 413 is.
  net::Result<std::size_t> read_some(std::span<std::byte> buffer);
  // All of it, which is at most Limits::body_bytes. After an error `value` is what came before.
  net::Result<std::string> read_all();
  // The headers that came behind the last chunk; empty before the body's end has been read.
  [[nodiscard]] std::span<const Header> trailers() const noexcept;

  // The scope of this request: it ends with Errc::timed_out when Limits::request has passed since
  // the end of the head, and with Errc::cancelled when the client hangs up or the server's grace is
  // over. It costs nothing if it is not asked for. A hang-up is noticed once the body has been
  // read: until then it is an error of the next read.
  [[nodiscard]] Context& context();

  // Of the connection: a proxy's, if there is one between. Never parks. Errors: the system's.
  [[nodiscard]] net::Result<net::Address> peer_address() const noexcept;

 private:
  Exchange& exchange_;
};

// "%41+b" becomes "A b" in a query, where a plus is a blank, and "A+b" in a path. Characters that
// are not properly coded stay as they are. From anywhere; neither parks nor synchronizes. Throws
// std::bad_alloc.
[[nodiscard]] std::string decode_query(std::string_view text);
// See decode_query().
[[nodiscard]] std::string decode_path(std::string_view text);

}  // namespace weft::http

// Sends a server's response.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>
#include <string_view>
#include <type_traits>
#include <utility>
#include <weft/detail/shared_function.hpp>
#include <weft/http/layer.hpp>
#include <weft/net/result.hpp>
#include <weft/net/serve.hpp>
#include <weft/net/tcp_stream.hpp>
#include <weft/until.hpp>

namespace weft::http {

class Exchange;

// Holds the connection that upgrade() passes to `talk`. Use either the data members or the
// functions, not both: read_some() takes bytes from `early`. asio::SyncStream uses the functions.
// Context: the callable `talk`; one caller may read while another writes; reads and writes park.
// Errors: errors of net::TcpStream and of the layer.
// Throws: std::bad_alloc.
struct Upgraded {
  net::TcpStream& stream;
  // The bytes that the client sent after its request. Read these first.
  std::string_view early;
  // The layer on the stream; if there is one, read and write through the layer. Null: no layer.
  Layer* layer = nullptr;
  // When the server stops, this token reports it; the stream is closed after the grace period.
  std::stop_token stop = {};

  // Reads at least one byte. Takes the bytes of `early` first, then reads the layer or the stream.
  net::Result<std::size_t> read_some(std::span<std::byte> buffer,
                                     const Until& until = Until::ambient());
  // Writes at least one byte; with a layer, all bytes.
  net::Result<std::size_t> write_some(std::span<const std::byte> data,
                                      const Until& until = Until::ambient());
  // Writes all of `data`.
  net::Result<std::size_t> write_all(std::span<const std::byte> data,
                                     const Until& until = Until::ambient());
  // Writes all of `text`.
  net::Result<std::size_t> write_all(std::string_view text, const Until& until = Until::ambient()) {
    return write_all(std::as_bytes(std::span(text)), until);
  }
  // Closes the connection and ends waiting calls. A layer notifies the peer if it can do so
  // without waiting.
  void close() noexcept;
};

// Serves an upgraded connection: see Response::upgrade().
using Talk = weft::detail::SharedFunction<net::Next(Upgraded)>;

// Sends the response to a request. Call send() with the whole body, or write() with its parts.
// Without a Content-Length, write() sends each part as a chunk; for HTTP/1.0, a close ends the
// body. If the handler sends nothing, the response has no body, unless the server reports an error:
// a failed read of the request's body; 500 if a Content-Length announced a body; 503 if no status
// was set and the request's context has ended. An exception aborts a partly sent response.
// Context: one fiber at a time; send() and writes park.
// Throws: std::bad_alloc.
class Response {
 public:
  // Makes a Response that refers to the server's exchange.
  explicit Response(Exchange& exchange) noexcept : exchange_(exchange) {}
  Response(const Response&) = delete;
  Response& operator=(const Response&) = delete;

  // Sets the status if it is 200 to 599; default: 200. No setter works once the head is sent.
  void set_status(int status) noexcept;
  // Returns the status.
  [[nodiscard]] int status() const noexcept;
  // Adds a header. If the header is Content-Length, the body must have that size.
  // Throws: std::invalid_argument for a name that is not a token, a value with control characters,
  // a Content-Length that is not a number, and the names Transfer-Encoding, Connection and Date.
  void add_header(std::string_view name, std::string_view value);
  // Replaces all headers of this name with one header.
  // Throws: whatever add_header() throws; the headers are then unchanged.
  void set_header(std::string_view name, std::string_view value);
  // Removes all headers of this name that were added before.
  void remove_header(std::string_view name) noexcept;
  // Closes the connection after this response.
  void close_after() noexcept;

  // Sends the whole response; parks until the kernel has taken it. Drops the body for 204, 205 and
  // 304, and for HEAD requests, whose response usually contains the body's size.
  // Errors: Errc::already_started; stream errors; Errc::wrong_length if Content-Length is not the
  // body's size, in which case nothing is sent.
  net::Result<void> send(std::string_view body);
  // Sends part of the body; parks until the kernel has taken it.
  // Errors: already_started after send(), upgrade(); wrong_length for excess bytes; stream errors.
  net::Result<void> write(std::string_view part);
  net::Result<void> write(std::span<const std::byte> part);
  // Sends `size` bytes of a file from `offset`; parks until the kernel has taken them. The caller
  // owns the descriptor. If the file cannot be read, the response is aborted.
  // Errors: errors of write() and of the file; Errc::wrong_length if the file ends early.
  net::Result<void> write_file(int descriptor, std::uint64_t offset, std::uint64_t size);
  // Aborts a response after its first write; the client can detect this. Has no effect before then.
  void break_off() noexcept;
  // Returns whether the head has been sent.
  [[nodiscard]] bool started() const noexcept;

  // Answers with 101, the added headers and `Upgrade: <protocol>`. After the handler, the
  // connection's fiber calls `talk` with the connection, which closes when `talk` returns. If
  // `protocol` is empty, nothing is sent; `talk` must send the response, as Beast's WebSocket does.
  // Errors: Errc::already_started; unsupported if the client did not ask for an upgrade, the body
  // is unread, `talk` is empty, or `protocol` has control characters.
  net::Result<void> upgrade(std::string_view protocol,
                            weft::detail::SharedFunction<void(Upgraded)> talk);
  // Works like upgrade() above, for a `talk` that returns a net::Next. After `talk` returns
  // Next::idle, the connection has no running fiber and no stack, and Limits::idle does not close
  // it. The server calls `talk` again when a read would not wait, and one last time when the server
  // stops. `talk` must process `early` and its own buffers before it returns Next::idle.
  template <class T>
  requires std::same_as<std::invoke_result_t<T&, Upgraded>, net::Next> net::Result<void> upgrade(
      std::string_view protocol, T talk) {
    return converse(protocol, Talk(std::move(talk)));
  }

 private:
  net::Result<void> converse(std::string_view protocol, Talk talk);

  Exchange& exchange_;
};

// Returns the name of a common status, such as "Not Found" for 404; "Unknown" for other statuses.
// Context: plain value.
[[nodiscard]] std::string_view reason_phrase(int status) noexcept;

}  // namespace weft::http

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
// Context: the talk; one caller may read and one may write at a time; reads and writes park.
// Errors: as for net::TcpStream.
// Throws: std::bad_alloc.
struct Upgraded {
  net::TcpStream& stream;
  // The bytes that the client sent after its request. Read these first.
  std::string_view early;
  // The layer on the stream; if there is one, read and write through the layer. Null: no layer.
  Layer* layer = nullptr;
  // When the server stops, it asks the talk to end, and closes the stream after the grace period.
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
// body. If the handler calls neither function, the response consists of its head only. The status
// is 500 if a Content-Length announced a body, and 503 if no status was set and the request's
// context has ended. An exception aborts a partly sent response, and closes its connection.
// Context: one fiber at a time; send() and writes park.
// Throws: std::bad_alloc.
class Response {
 public:
  // Makes a Response that refers to the server's exchange.
  explicit Response(Exchange& exchange) noexcept : exchange_(exchange) {}
  Response(const Response&) = delete;
  Response& operator=(const Response&) = delete;

  // Sets the status, 200 to 599; the default is 200. No setter has an effect once the head is sent.
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

  // Sends the whole response; parks until the kernel has taken it. The response to a HEAD request
  // contains only the body's size.
  // Errors: Errc::already_started; Errc::wrong_length, with nothing sent, if Content-Length is not
  // the body's size; stream errors.
  net::Result<void> send(std::string_view body);
  // Sends part of the body; parks until the kernel has taken it.
  // Errors: Errc::already_started after send(); wrong_length beyond Content-Length; stream errors.
  net::Result<void> write(std::string_view part);
  net::Result<void> write(std::span<const std::byte> part);
  // Sends `size` bytes of a file from `offset`; parks until the kernel has taken them. The caller
  // owns the descriptor. If the file cannot be read, the response is aborted.
  // Errors: errors of write() and of the file; Errc::wrong_length if the file ends early.
  net::Result<void> write_file(int descriptor, std::uint64_t offset, std::uint64_t size);
  // Aborts a response that has begun, as an exception does; the client can detect this. Has no
  // effect before the head is sent.
  void break_off() noexcept;
  // Returns whether the head has been sent.
  [[nodiscard]] bool started() const noexcept;

  // Answers with 101, the added headers and `Upgrade: <protocol>`. After the handler, the
  // connection's fiber calls `talk` with the connection, which closes when `talk` returns. If
  // `protocol` is empty, nothing is sent, and `talk` must answer, as Beast's WebSocket does.
  // Errors: Errc::already_started; unsupported if no upgrade was requested or the body is unread.
  net::Result<void> upgrade(std::string_view protocol,
                            weft::detail::SharedFunction<void(Upgraded)> talk);
  // Works like upgrade() above, for a `talk` that returns a net::Next. After `talk` returns
  // Next::idle, the connection has no running fiber and no stack, and Limits::idle does not close
  // it. The server calls `talk` again when there is data to read, and one last time when the server
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

// Returns the name of a status, such as "Not Found" for 404; "Unknown" if there is no name.
// Context: plain value.
[[nodiscard]] std::string_view reason_phrase(int status) noexcept;

}  // namespace weft::http

// The answer of a server.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <weft/http/layer.hpp>
#include <weft/net/result.hpp>
#include <weft/net/serve.hpp>
#include <weft/net/tcp_stream.hpp>
#include <weft/until.hpp>

namespace weft::http {

class Exchange;

// The rest of a connection that no longer speaks HTTP. Either its parts are used, or its calls,
// which bring them together; asio::SyncStream takes it for these. One caller reads and one writes
// at a time. Calls throw and synchronize where they say so.
struct Upgraded {
  net::TcpStream& stream;
  // The bytes that the client has sent already after its request. Read these first.
  std::string_view early;
  // Not null: the layer on the stream. Read and write the layer instead.
  Layer* layer = nullptr;
  // Requested when the server stops: say good-bye, and return. At the end of its grace the stream
  // is closed.
  std::stop_token stop = {};

  // Reads at least one byte: of `early`, which gets shorter, then of the layer or the stream. As
  // TcpStream's; parks.
  net::Result<std::size_t> read_some(std::span<std::byte> buffer, const Until& until = {});
  // Writes at least one byte; all of it where there is a layer. As TcpStream's; parks.
  net::Result<std::size_t> write_some(std::span<const std::byte> data, const Until& until = {});
  // Writes all of it, as TcpStream's does; parks.
  net::Result<std::size_t> write_all(std::span<const std::byte> data, const Until& until = {});
  // Ends the connection, and the calls that wait; a layer's peer is notified, if that takes no
  // wait. Never parks.
  void close() noexcept;
};

// Serves an upgraded connection: see Response::upgrade().
using Talk = std::function<net::Next(Upgraded)>;

// The answer to one request. Either send(), with all of the body, or any number of write()s, which
// go out as chunks if no Content-Length has been set. A handler that does neither has answered with
// the status and without a body. If it has promised one by Content-Length, the status is 500. If it
// has set no status and the request's context is over, it is 503. An answer that has begun is
// broken off by throwing: the connection ends, and before what would tell the client that it has
// all of it. Used by one fiber at a time. Calls park, throw and synchronize where they say so.
class Response {
 public:
  // The server makes it.
  explicit Response(Exchange& exchange) noexcept : exchange_(exchange) {}
  Response(const Response&) = delete;
  Response& operator=(const Response&) = delete;

  // 200 unless it is set; from 200 to 599. These three are without effect once the head has been
  // sent.
  void set_status(int status) noexcept;
  // The status that set_status() was given. Never parks.
  [[nodiscard]] int status() const noexcept;
  // Throws std::invalid_argument for a name that is no token, a value with control characters, and
  // for what the library writes itself: Transfer-Encoding, Connection, Date. A Content-Length must
  // be a number, and is a promise for what will be written.
  void add_header(std::string_view name, std::string_view value);
  // The connection is closed behind this answer.
  void close_after() noexcept;

  // The whole answer. Parks until the kernel has taken it. To a HEAD request the body is not sent,
  // but its size is. Errors: Errc::already_started; Errc::wrong_length if Content-Length said
  // otherwise, and then nothing has been sent; the stream's.
  std::error_code send(std::string_view body);
  // A part of the body. Parks until the kernel has taken it. Errors: Errc::wrong_length if it is
  // more than Content-Length said; the stream's.
  std::error_code write(std::string_view part);
  std::error_code write(std::span<const std::byte> part);
  // A part of the body that is in a file: `size` bytes from `offset`. The descriptor is the
  // caller's. Parks until the kernel has taken it. Errors: as write(); the file's;
  // Errc::wrong_length if it ends before. After an error of the file the answer is broken off, as
  // by throwing.
  std::error_code write_file(int descriptor, std::uint64_t offset, std::uint64_t size);
  // Whether the head has been sent.
  [[nodiscard]] bool started() const noexcept;

  // Answers 101 with the headers that have been added, `protocol` as Upgrade, and gives the
  // connection to `talk`. That is called in the connection's fiber when the handler has returned
  // and the request is gone. Without a protocol nothing is sent: `talk` answers, as Beast's
  // WebSocket does. The connection is closed when it returns. The request must have asked for an
  // upgrade, and its body must have been read: else Errc::unsupported.
  std::error_code upgrade(std::string_view protocol, std::function<void(Upgraded)> talk);
  // The same for a `talk` that returns a net::Next. After Next::idle the connection has no fiber
  // that runs and no stack, and Limits::idle does not end it. `talk` is called again when there is
  // something to read, and a last time when the server stops. Before it returns idle, it must have
  // dealt with the bytes in `early` and in its own buffers.
  template <class T>
  requires std::same_as<std::invoke_result_t<T&, Upgraded>, net::Next> std::error_code upgrade(
      std::string_view protocol, T talk) {
    return converse(protocol, Talk(std::move(talk)));
  }

 private:
  std::error_code converse(std::string_view protocol, Talk talk);

  Exchange& exchange_;
};

// "Not Found" for 404; "Unknown" for what has no name. From anywhere; neither parks, throws nor
// synchronizes.
[[nodiscard]] std::string_view reason_phrase(int status) noexcept;

}  // namespace weft::http

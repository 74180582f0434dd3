// Presents connections over Unix sockets as TCP connections.
#pragma once

#include <utility>
#include <weft/net/byte_stream.hpp>
#include <weft/net/tcp_stream.hpp>

namespace weft::http {

// Moves the socket of `stream` into a TcpStream. If it is a Unix socket, calls that concern TCP or
// addresses return errors; all other calls work.
[[nodiscard]] inline net::TcpStream as_tcp(net::ByteStream&& stream) noexcept {
  struct Opened : net::ByteStream {
    explicit Opened(net::ByteStream&& from) noexcept : net::ByteStream(std::move(from)) {}
    [[nodiscard]] net::Socket take() noexcept { return std::move(socket_); }
  };
  return net::TcpStream(Opened(std::move(stream)).take());
}

}  // namespace weft::http

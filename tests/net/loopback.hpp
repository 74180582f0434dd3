// Makes two ends of a connection within this machine.
#pragma once

#include <doctest/doctest.h>
#include <sys/socket.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <weft/net/tcp_listener.hpp>
#include <weft/net/tcp_stream.hpp>

namespace weft::test {

[[nodiscard]] inline net::TcpListener listen_anywhere(const net::ListenOptions& options = {}) {
  auto [listener, error] = net::TcpListener::listen(net::Address::loopback_v4(0), options);
  CHECK(error == std::error_code{});
  return std::move(listener);
}

struct Pair {
  net::TcpStream client;
  net::TcpStream server;
};

// The kernel completes a connection before it is accepted, so one caller can do both.
[[nodiscard]] inline Pair connect_to(net::TcpListener& listener) {
  auto [client, refused] = net::TcpStream::connect(listener.local_address().value);
  CHECK(refused == std::error_code{});
  auto [server, failed] = listener.accept();
  CHECK(failed == std::error_code{});
  return {std::move(client), std::move(server)};
}
[[nodiscard]] inline Pair connected_pair() {
  net::TcpListener listener = listen_anywhere();
  return connect_to(listener);
}

[[nodiscard]] inline std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

[[nodiscard]] inline std::string read_text(net::ByteStream& stream, std::size_t size) {
  std::string text(size, '\0');
  const auto [count, error] = stream.read_exactly(std::as_writable_bytes(std::span(text)));
  text.resize(count);
  return text;
}

// Sends back what it receives until the peer has finished; returns the number of bytes.
inline std::size_t echo(net::ByteStream& stream) {
  std::byte buffer[4096];
  std::size_t total = 0;
  for (;;) {
    const auto [count, error] = stream.read_some(buffer);
    if (error) return total;
    if (stream.write_all(std::span(buffer).first(count)).error) return total;
    total += count;
  }
}

// Makes the buffers so small that a sender soon has to wait.
inline void shrink_buffers(net::ByteStream& stream, int size = 4096) {
  CHECK(stream.set_send_buffer(size));
  CHECK(stream.set_receive_buffer(size));
}

}  // namespace weft::test

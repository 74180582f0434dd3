// Provides a WebSocket client that sends and receives raw bytes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "libs/http/websocket/deflate.hpp"
#include "tests/http/websocket_frames.hpp"
#include "tests/support/http_test.hpp"

namespace weft::test {

inline constexpr auto kDropped = http::DeflateContext::dropped;
inline constexpr std::string_view kOpening =
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

// Connects, and returns after it has received the head of the answer.
inline net::TcpStream open(const HttpServer& server, std::string& head,
                           std::string_view more = {}) {
  net::TcpStream stream = server.connect();
  send_text(stream, std::string(kOpening).append(more).append("\r\n"));
  head = receive_until(stream, "\r\n\r\n");
  return stream;
}

// Returns the server's next frame without its length, or an empty text at the stream's end.
inline std::string receive_frame(net::TcpStream& stream) {
  std::array<char, 2> head{};
  const auto bytes = std::as_writable_bytes(std::span(head));
  if (stream.read_exactly(bytes).error) return {};
  std::string payload(static_cast<unsigned char>(head[1]), '\0');
  (void)stream.read_exactly(std::as_writable_bytes(std::span(payload)));
  return head[0] + payload;
}

// Answers the first ping of a server, and not the second one, which ends the connection.
inline void answer_one_ping(net::TcpStream& stream) {
  CHECK(receive_frame(stream) == "\x89");
  send_text(stream, frame(0x8a, ""));
  CHECK(receive_frame(stream) == "\x89");
  CHECK(receive_all(stream).empty());
}

inline std::string server_close(std::uint16_t code) { return "\x88" + http::make_close(code, {}); }

inline std::string url_of(const HttpServer& server) {
  return "ws://127.0.0.1:" + std::to_string(server.address().port()) + "/";
}

}  // namespace weft::test

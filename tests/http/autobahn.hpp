// Runs the cases of the Autobahn test suite (fuzzingclient, versions 0.8 and 25): a server sends
// each message back, and a client sends any bytes. The bytes of the cases are written for weft.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <weft/http/websocket.hpp>
#include <weft/this_fiber.hpp>

#include "tests/http/websocket_frames.hpp"
#include "tests/support/http_test.hpp"
#include "tests/support/sim_test.hpp"

namespace weft::test {

// The number by which the tests divide the suite's sizes and counts.
inline constexpr std::size_t kPart = kSanitized || kEmulated ? 64 : 16;

inline void echo(http::WebSocket& socket) {
  for (;;) {
    const auto [message, error] = socket.receive();
    if (error) return;
    const auto bytes = std::as_bytes(std::span(message.data));
    (void)(message.is_text ? socket.send_text(message.data) : socket.send_binary(bytes));
  }
}

// Returns a payload, or for a long payload its size and a checksum.
inline std::string shown(std::string_view payload) {
  if (payload.size() <= 200) return std::string(payload);
  std::size_t sum = 0;
  for (const char byte : payload) sum = sum * 31 + static_cast<unsigned char>(byte);
  return std::to_string(payload.size()) + "#" + std::to_string(sum);
}
inline std::string text(std::string_view payload) { return "text=" + shown(payload) + " "; }
inline std::string binary(std::string_view payload) { return "binary=" + shown(payload) + " "; }
inline std::string pong(std::string_view payload) { return "pong=" + shown(payload) + " "; }
inline std::string closed(unsigned code) { return "close=" + std::to_string(code) + " "; }

// Is a client that sends any bytes, and reads frames.
class Peer {
 public:
  explicit Peer(const HttpServer& server, const std::string& more = {})
      : stream_(server.connect()) {
    send_text(stream_,
              "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
              "Sec-WebSocket-Version: 13\r\n"
              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
                  more + "\r\n");
    head_ = receive_until(stream_, "\r\n\r\n");
    CHECK(head_.starts_with("HTTP/1.1 101 "));
  }

  [[nodiscard]] const std::string& head() const { return head_; }
  // Sends pieces of this size, each by a system call; 0: all bytes at once.
  void send(std::string_view bytes, std::size_t chop = 0) {
    while (!bytes.empty()) {
      const std::string_view part = bytes.substr(0, chop == 0 ? bytes.size() : chop);
      bytes.remove_prefix(part.size());
      send_text(stream_, part);
    }
  }
  // Receives the next frame; returns false at the stream's end.
  [[nodiscard]] bool receive(http::FrameHeader& header, std::string& payload) {
    for (;;) {
      std::string_view rest = input_;
      if (header.parse(rest) == http::FrameHeader::State::complete && rest.size() >= header.size) {
        payload = rest.substr(0, header.size);
        input_.erase(0, input_.size() - rest.size() + header.size);
        return true;
      }
      std::array<char, 16384> room;
      const auto [count, error] = stream_.read_some(std::as_writable_bytes(std::span(room)));
      if (error) return false;
      input_.append(room.data(), count);
    }
  }
  // Returns all frames up to the stream's end, one word each.
  [[nodiscard]] std::string receive_words() {
    std::string words;
    http::FrameHeader header;
    std::string payload;
    while (receive(header, payload)) words += word(header, payload);
    return words;
  }
  [[nodiscard]] static std::string word(const http::FrameHeader& header, std::string_view payload) {
    switch (header.opcode) {
      case http::Opcode::text:
        return text(payload);
      case http::Opcode::binary:
        return binary(payload);
      case http::Opcode::pong:
        return pong(payload);
      case http::Opcode::close: {
        if (payload.size() < 2) return "close ";
        const auto code = [&](std::size_t i) -> unsigned {
          return static_cast<unsigned char>(payload[i]);
        };
        return closed(code(0) << 8U | code(1));
      }
      default:
        return "other ";
    }
  }

 private:
  net::TcpStream stream_;
  std::string head_;
  std::string input_;
};

// Runs cases, and counts them.
class Suite {
 public:
  explicit Suite(const http::WebSocketOptions& options)
      : server_([options](http::Request& request, http::Response& response) {
          (void)http::accept_websocket(request, response, echo, options);
        }) {}

  [[nodiscard]] const HttpServer& server() const { return server_; }
  [[nodiscard]] std::size_t count() const { return numbers_.size(); }
  void begin(const std::string& number) {
    CAPTURE(number);
    CHECK(numbers_.insert(number).second);
  }
  // Sends the parts, with a pause between them, and compares the answer.
  void check(const std::string& number, const std::vector<std::string>& parts,
             const std::string& answer, std::size_t chop = 0) {
    begin(number);
    Peer peer(server_);
    for (const std::string& part : parts) {
      if (&part != &parts.front()) this_fiber::sleep_for(std::chrono::seconds(1));
      peer.send(part, chop);
    }
    CAPTURE(number);
    CHECK(peer.receive_words() == answer);
  }
  // Checks a case in which the client also closes. The answer includes the answer to the close.
  void check_well(const std::string& number, const std::string& bytes, const std::string& answer,
                  std::size_t chop = 0) {
    check(number, {bytes + close_frame(1000)}, answer + closed(1000), chop);
  }
  void check_refused(const std::string& number, const std::string& bytes, unsigned code = 1002,
                     std::size_t chop = 0) {
    check(number, {bytes}, closed(code), chop);
  }

 private:
  std::set<std::string> numbers_;
  HttpServer server_;
};

inline std::string number(std::string_view group, std::size_t i) {
  return std::string(group) + "." + std::to_string(i);
}

// Returns a message in fragments of this size.
inline std::string fragments(unsigned opcode, std::string_view payload, std::size_t size) {
  std::string bytes;
  unsigned first = opcode;
  do {
    const std::string_view part = payload.substr(0, size);
    payload.remove_prefix(part.size());
    bytes += frame(first | (payload.empty() ? 0x80 : 0), part);
    first = 0;
  } while (!payload.empty());
  return bytes;
}

// Calls run() with each value and its number, which starts at 1.
template <class T>
inline void for_each_numbered(std::initializer_list<T> values,
                              const std::function<void(std::size_t, const T&)>& run) {
  std::size_t i = 0;
  for (const T& value : values) run(++i, value);
}

}  // namespace weft::test

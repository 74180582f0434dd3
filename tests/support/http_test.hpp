// Provides a server on loopback, and clients that send and receive raw bytes.
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/context.hpp>
#include <weft/dump.hpp>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/http/server.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/net/tcp_stream.hpp>

#include "tests/support/fiber_test.hpp"

namespace weft::test {

// Serves in a fiber until its destruction.
class HttpServer {
 public:
  explicit HttpServer(http::Handler handler, http::ServerOptions options = {})
      : listener_(net::TcpListener::listen(net::Address::loopback_v4(0)).value),
        server_(std::move(handler), std::move(options)),
        address_(listener_.local_address().value),
        loop_(weft::spawn([this] { return server_.serve(listener_); })) {}
  ~HttpServer() { stop(); }

  // Returns true if the server ended before the deadline.
  bool stop(Deadline grace = Deadline::past()) {
    const bool in_time = server_.shutdown(grace);
    if (loop_.joinable()) CHECK(loop_.join());
    listener_.close();  // Ends waiting clients, which are never accepted.
    return in_time;
  }

  // Waits until serve() has returned; the test must have ended it.
  void join() { CHECK(loop_.join()); }
  [[nodiscard]] bool has_ended() const { return loop_.done(); }

  [[nodiscard]] net::Address address() const { return address_; }
  [[nodiscard]] net::TcpStream connect() const {
    auto connected = net::TcpStream::connect(address());
    CHECK_FALSE(connected.error);
    return std::move(connected.value);
  }
  [[nodiscard]] http::Server& server() { return server_; }

 private:
  net::TcpListener listener_;
  http::Server server_;
  const net::Address address_;
  JoinHandle<Result<void>> loop_;
};

// Parks until `context` has ended; returns why it ended.
inline std::error_code wait_for_end(const Context& context) {
  Event never;
  CHECK_FALSE(never.wait_until(context));
  return context.status();
}

inline void send_text(net::TcpStream& stream, std::string_view text) {
  // A server that has refused a request may already have closed the connection.
  (void)stream.write_all(std::as_bytes(std::span(text)));
}

// Receives up to the end of the stream.
inline std::string receive_all(net::TcpStream& stream) {
  std::string all;
  std::array<char, 4096> part;
  for (;;) {
    const auto [count, error] = stream.read_some(std::as_writable_bytes(std::span(part)));
    if (error) return all;
    all.append(part.data(), count);
  }
}

// Counts fibers that have not begun, because a fiber gets its number and its stack when it begins.
inline std::size_t fibers_without_stack() {
  std::ostringstream dump;
  dump::write_json(dump);
  const std::string text = dump.str();
  constexpr std::string_view kUnnumbered = "{\"runtime\":";
  std::size_t count = 0;
  for (auto at = text.find(kUnnumbered); at != std::string::npos;
       at = text.find(kUnnumbered, at + 1)) {
    ++count;
  }
  return count;
}

// Reads from any kind of stream until `text` or the end of the stream arrives. Returns all bytes
// that it has read.
template <class Stream>
std::string receive_until(Stream& stream, std::string_view text) {
  std::string all;
  char byte = 0;
  while (!all.ends_with(text)) {
    if (stream.read_some(std::as_writable_bytes(std::span(&byte, 1))).error) break;
    all += byte;
  }
  return all;
}

struct Answer {
  int status = 0;
  std::string head;
  std::string body;

  [[nodiscard]] bool has(std::string_view line) const {
    return head.find("\r\n" + std::string(line) + "\r\n") != std::string::npos;
  }
  // Returns the Content-Length in the head, or 0 if there is none.
  [[nodiscard]] std::size_t body_size() const {
    const auto at = head.find("Content-Length: ");
    return at == std::string::npos ? 0 : std::stoul(head.substr(at + 16));
  }
};

// Removes the first answer from `text`. The answer has a Content-Length or no body. Returns status
// 0 if there is no answer.
inline Answer take_answer(std::string& text) {
  Answer answer;
  const std::size_t end = text.find("\r\n\r\n");
  if (end == std::string::npos || !text.starts_with("HTTP/1.1 ")) return answer;
  answer.status = std::stoi(text.substr(9, 3));
  answer.head = text.substr(0, end + 2);
  const std::size_t length = answer.body_size();
  answer.body = text.substr(end + 4, length);
  text.erase(0, end + 4 + length);
  return answer;
}

inline constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

inline void say_hello(http::Request&, http::Response& response) { (void)response.send("hello"); }

// Receives the next answer on a connection. The answer has a Content-Length or no body.
inline Answer receive_answer(net::TcpStream& stream) {
  std::string text = receive_until(stream, "\r\n\r\n");
  Answer answer = take_answer(text);
  answer.body.resize(answer.body_size());
  (void)stream.read_exactly(std::as_writable_bytes(std::span(answer.body)));
  return answer;
}
inline Answer ask_once(net::TcpStream& stream, std::string_view request) {
  send_text(stream, request);
  return receive_answer(stream);
}

// Sends `request`, closes this side of the stream for writing, and returns all answers.
inline std::vector<Answer> ask(const HttpServer& server, std::string_view request) {
  net::TcpStream stream = server.connect();
  send_text(stream, request);
  (void)stream.shutdown(net::Shutdown::write);
  std::string text = receive_all(stream);
  std::vector<Answer> answers;
  while (!text.empty()) {
    answers.push_back(take_answer(text));
    if (answers.back().status == 0) break;
    if (answers.back().status == 100) answers.pop_back();
  }
  return answers;
}

}  // namespace weft::test

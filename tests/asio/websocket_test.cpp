// Tests Beast's WebSocket behind weft's HTTP server, and over TLS.
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <weft/asio/http.hpp>
#include <weft/asio/websocket.hpp>
#include <weft/go.hpp>
#include <weft/http/server.hpp>
#include <weft/this_fiber.hpp>
#if defined(WEFT_TEST_SSL)
#include <weft/tls/http.hpp>
#include <weft/tls/stream.hpp>

#include "tests/tls/certificates.hpp"
#endif

#include "tests/asio/beast_test.hpp"
#include "tests/support/http_test.hpp"

namespace weft::test {

namespace {

namespace websocket = boost::beast::websocket;

// Sends each message back until the peer closes.
template <class Stream>
void echo(websocket::stream<Stream>& socket) {
  boost::system::error_code error;
  for (;;) {
    boost::beast::flat_buffer buffer;
    socket.read(buffer, error);
    if (error) break;
    socket.write(buffer.data());
  }
  CHECK(error == websocket::error::closed);
}

template <class Stream>
void talk(websocket::stream<Stream>& socket) {
  for (const std::size_t size : {1UL, 1000UL, 100'000UL}) {
    socket.write(boost::asio::buffer(std::string(size, 'x')));
    boost::beast::flat_buffer buffer;
    socket.read(buffer);
    CHECK(boost::beast::buffers_to_string(buffer.data()) == std::string(size, 'x'));
  }
  socket.close(websocket::close_code::normal);
}

// GET /chat serves WebSockets; all other paths serve plain requests.
void chat(http::Request& request, http::Response& response) {
  if (request.path() != "/chat") return void(response.send("hello"));
  const auto is_upgraded =
      response.upgrade({}, [head = asio::to_beast(request)](const http::Upgraded& upgraded) {
        spawn(kLarge, [&] {
          websocket::stream<asio::UpgradedStream> socket{asio::UpgradedStream(upgraded)};
          boost::system::error_code error;
          socket.accept(head, error);
          if (!error) echo(socket);
        }).join();
      });
  if (!is_upgraded) response.set_status(426);
}

// Sends messages back, and occupies no fiber between two messages.
void chat_or_idle(http::Request& request, http::Response& response) {
  using Socket = websocket::stream<asio::IdleStream>;
  const auto talk = [head = asio::to_beast(request),
                     socket = std::shared_ptr<Socket>()](http::Upgraded upgraded) mutable {
    boost::system::error_code error;
    spawn(kLarge, [&] {
      const bool is_open = socket != nullptr;
      if (!is_open) socket = std::make_shared<Socket>(asio::FrameStream());
      asio::FrameStream& frames = socket->next_layer().stream();
      frames.resume(upgraded);
      if (!is_open) {
        socket->auto_fragment(false);
        socket->accept(head, error);
      }
      if (upgraded.stop.stop_requested()) socket->close(websocket::close_code::going_away, error);
      for (bool has_come = is_open || frames.has_more(); has_come && !error;
           has_come = frames.has_more()) {
        boost::beast::flat_buffer message;
        socket->read(message, error);
        if (!error) socket->write(message.data(), error);
      }
    }).join();
    return error || upgraded.stop.stop_requested() ? net::Next::close : net::Next::idle;
  };
  if (!response.upgrade({}, talk)) response.set_status(426);
}

constexpr std::string_view kHandshake =
    "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

// Makes a frame in the form that clients send, masked with zeros.
std::string frame(int kind, std::string_view payload, bool is_last = true) {
  std::string bytes(1, static_cast<char>((is_last ? 0x80 : 0) | kind));
  const std::size_t size = payload.size();
  if (size < 126) {
    bytes += static_cast<char>(0x80 | size);
  } else {
    const int digits = size < 0x10000 ? 2 : 8;
    bytes += static_cast<char>(0x80 | (digits == 2 ? 126 : 127));
    for (int i = digits - 1; i >= 0; --i) bytes += static_cast<char>(size >> (8 * i) & 0xff);
  }
  return bytes.append(4, '\0').append(payload);
}

constexpr int kContinued = 0;
constexpr int kText = 1;
constexpr int kClose = 8;
constexpr int kPing = 9;

}  // namespace

TEST_SUITE_BEGIN("asio/websocket");

FIBER_TEST_CASE("a client of a weft HTTP server switches to WebSocket after other requests") {
  const HttpServer server(chat);
  net::TcpStream stream = server.connect();
  CHECK(ask_once(stream, kGet).body == "hello");
  CHECK(ask_once(stream, "GET /chat HTTP/1.1\r\nHost: a\r\n\r\n").status == 426);
  spawn(kLarge, [&] {
    websocket::stream<asio::SyncStream<>> socket{asio::SyncStream<>(std::move(stream))};
    socket.handshake("a", "/chat");
    talk(socket);
  }).join();
}

FIBER_TEST_CASE("a WebSocket receives bytes that a client sent together with its handshake") {
  const HttpServer server(chat);
  net::TcpStream stream = server.connect();
  // Sends "hello" in a masked frame, and then a close.
  send_text(stream, std::string(kHandshake) + frame(kText, "hello") + frame(kClose, "\x03\xe8"));
  const std::string head = receive_until(stream, "\r\n\r\n");
  CHECK(head.starts_with("HTTP/1.1 101 "));
  CHECK(head.find("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n") != std::string::npos);
  CHECK(receive_all(stream) == "\x81\x05hello\x88\x02\x03\xe8");
}

FIBER_TEST_CASE("a Beast server answers with status 400 when a WebSocket handshake has no key") {
  const HttpServer server(chat);
  net::TcpStream stream = server.connect();
  send_text(stream,
            "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  CHECK(receive_all(stream).starts_with("HTTP/1.1 400 "));
}

FIBER_TEST_CASE("a WebSocket handshake is refused when the key is not 16 bytes in base64") {
  const HttpServer server(chat);
  for (const char* key :
       {"dGhlIHNhbXBsZQ==", "dGhlIHNhbXBsZSBub25jZTE=", "dGhlIHNhbXBsZSBub25jZTEy",
        "dGhlIHNhbXBsZSBub25jZ===", "dGhlIHNhbXBs=SBub25jZQ==", "a", "dGhlIHNhbXBsZSB?b25jZQ=="}) {
    net::TcpStream stream = server.connect();
    send_text(stream, std::string("GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n"
                                  "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                                  "Sec-WebSocket-Key: ") +
                          key + "\r\n\r\n");
    (void)stream.shutdown(net::Shutdown::write);
    CHECK(std::pair(key, receive_all(stream).substr(0, 13)) ==
          std::pair(key, std::string("HTTP/1.1 400 ")));
  }
}

FIBER_TEST_CASE("a WebSocket whose client is silent has no running fiber and no stack") {
  constexpr std::size_t kClients = 20;
  HttpServer server(chat_or_idle);
  std::vector<net::TcpStream> clients;
  for (std::size_t i = 0; i < kClients; ++i) {
    clients.push_back(server.connect());
    send_text(clients.back(), kHandshake);
    (void)receive_until(clients.back(), "\r\n\r\n");
  }
  for (const std::string_view word : {"once", "again"}) {
    for (net::TcpStream& client : clients) {
      send_text(client, frame(kText, word));
      CHECK(receive_until(client, word).ends_with(word));
    }
    while (fibers_without_stack() < kClients) this_fiber::yield();
  }
  auto end = spawn([&] { CHECK(server.stop(Deadline::never())); });
  for (net::TcpStream& client : clients) {
    CHECK(receive_until(client, "\x03\xe9").ends_with("\x88\x02\x03\xe9"));  // Going away.
    send_text(client, frame(kClose, "\x03\xe9"));
    CHECK(receive_all(client).empty());
  }
  end.join();
}

FIBER_TEST_CASE("a WebSocket processes all frames that arrive while the connection becomes idle") {
  const HttpServer server(chat_or_idle);
  net::TcpStream stream = server.connect();
  // Sends a message with the handshake, two at once, and messages of many lengths.
  send_text(stream, std::string(kHandshake) + frame(kText, "early"));
  (void)receive_until(stream, "\r\n\r\n");
  CHECK(receive_until(stream, "early") ==
        "\x81\x05"
        "early");
  send_text(stream, frame(kText, "a") + frame(kText, "") + frame(kText, "b"));
  CHECK(receive_until(stream, "b") == std::string("\x81\x01"
                                                  "a\x81\0\x81\x01"
                                                  "b",
                                                  8));
  for (const std::size_t size :
       {125U, 126U, 1533U, 2047U, 2048U, 2049U, 65'535U, 65'536U, 200'000U}) {
    const std::string payload = std::string(size - 1, 'x') + "$";
    send_text(stream, frame(kText, payload) + frame(kText, "!"));
    CHECK(receive_until(stream, "$").ends_with(payload));
    CHECK(receive_until(stream, "!") == "\x81\x01!");
  }
  // Sends a message in parts, with a ping between them, byte by byte.
  const std::string parts =
      frame(kText, "one ", false) + frame(kPing, "p") + frame(kContinued, "two");
  for (const char& byte : parts) send_text(stream, {&byte, 1});
  CHECK(receive_until(stream, "two") == "\x8a\x01p\x81\x07one two");
  // The server also answers a single ping.
  send_text(stream, frame(kPing, "?"));
  CHECK(receive_until(stream, "?") == "\x8a\x01?");
  send_text(stream, frame(kText, "last"));
  CHECK(receive_until(stream, "last") == "\x81\x04last");
}

#if defined(WEFT_TEST_SSL)
namespace {

struct Secrets {
  Certificates certificates;
  tls::Context server;
  tls::Context client;

  Secrets() {
    certificates.make("server", "a.test");
    server = tls::Context::server({.certificate_file = certificates.certificate("server"),
                                   .key_file = certificates.key("server")})
                 .value;
    client = tls::Context::client({.authorities_file = certificates.authority()}).value;
  }
  [[nodiscard]] tls::Stream connect(net::TcpStream stream) const {
    auto [secure, error] = tls::Stream::connect(std::move(stream), client, "a.test");
    CHECK_FALSE(error);
    return std::move(secure);
  }
};

// Talks over TLS to a server that calls `handler`.
void talk_securely(http::Handler handler) {
  const Secrets secrets;
  const HttpServer server(std::move(handler), {.secure = tls::server_layer(secrets.server)});
  spawn(kLarge, [&] {
    using Stream = asio::SyncStream<tls::Stream>;
    websocket::stream<Stream> socket{Stream(secrets.connect(server.connect()))};
    socket.handshake("a.test", "/chat");
    talk(socket);
  }).join();
}

}  // namespace

FIBER_TEST_CASE("a Beast WebSocket over TLS exchanges messages") { talk_securely(chat); }

FIBER_TEST_CASE("a WebSocket over TLS gives its stack back while idle between messages") {
  talk_securely(chat_or_idle);
}

FIBER_TEST_CASE("a WebSocket over TLS exchanges messages without an HTTP server") {
  using Stream = asio::SyncStream<tls::Stream>;
  const Secrets secrets;
  auto listener = net::TcpListener::listen(net::Address::loopback_v4(0)).value;
  auto server = spawn(kLarge, [&] {
    auto [stream, error] = tls::Stream::accept(listener.accept().value, secrets.server);
    CHECK_FALSE(error);
    websocket::stream<Stream> socket{Stream(std::move(stream))};
    socket.accept();
    echo(socket);
  });
  spawn(kLarge, [&] {
    auto connected = net::TcpStream::connect(listener.local_address().value).value;
    websocket::stream<Stream> socket{Stream(secrets.connect(std::move(connected)))};
    socket.handshake("a.test", "/");
    talk(socket);
  }).join();
  server.join();
}
#endif

TEST_SUITE_END();

}  // namespace weft::test

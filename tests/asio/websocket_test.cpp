// Beast's WebSocket behind our HTTP server, and over TLS.
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <weft/asio/http.hpp>
#include <weft/go.hpp>
#include <weft/http/server.hpp>
#if defined(WEFT_TEST_SSL)
#include <weft/tls/http.hpp>
#include <weft/tls/stream.hpp>

#include "tests/tls/certificates.hpp"
#endif

#include "tests/support/http_test.hpp"

namespace weft::test {

namespace {

namespace websocket = boost::beast::websocket;

// The descriptor that Asio opens for the first timer of the process is no test's.
[[maybe_unused]] const bool kHasTimers = [] {
  const boost::asio::steady_timer timer(asio::detail::unused_context());
  return true;
}();

// Beast's calls have buffers on the stack.
constexpr SpawnOptions kLarge = {.stack_size = 256 * 1024};

// Says what it hears, until the peer says good-bye.
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

// GET /chat is for WebSockets, and all else for others.
void chat(http::Request& request, http::Response& response) {
  if (request.path() != "/chat") return void(response.send("hello"));
  const auto refused =
      response.upgrade({}, [head = asio::to_beast(request)](const http::Upgraded& upgraded) {
        spawn(kLarge, [&] {
          websocket::stream<asio::UpgradedStream> socket{asio::UpgradedStream(upgraded)};
          boost::system::error_code error;
          socket.accept(head, error);
          if (!error) echo(socket);
        }).join();
      });
  if (refused) response.set_status(426);
}

}  // namespace

TEST_SUITE_BEGIN("asio/websocket");

FIBER_TEST_CASE("a client of our HTTP server goes on by WebSocket, behind other requests") {
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

FIBER_TEST_CASE("what a client has sent behind its handshake is heard") {
  const HttpServer server(chat);
  net::TcpStream stream = server.connect();
  // "hello" in a masked frame; then a close.
  send_text(stream, std::string("GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n"
                                "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n") +
                        std::string("\x81\x85\0\0\0\0hello\x88\x82\0\0\0\0\x03\xe8", 19));
  const std::string head = receive_until(stream, "\r\n\r\n");
  CHECK(head.starts_with("HTTP/1.1 101 "));
  CHECK(head.find("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n") != std::string::npos);
  CHECK(receive_all(stream) == "\x81\x05hello\x88\x02\x03\xe8");
}

FIBER_TEST_CASE("a handshake that Beast refuses is answered by it") {
  const HttpServer server(chat);
  net::TcpStream stream = server.connect();
  send_text(stream,
            "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  CHECK(receive_all(stream).starts_with("HTTP/1.1 400 "));
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

}  // namespace

FIBER_TEST_CASE("the same over TLS") {
  const Secrets secrets;
  const HttpServer server(chat, {.secure = tls::server_layer(secrets.server)});
  spawn(kLarge, [&] {
    using Stream = asio::SyncStream<tls::Stream>;
    websocket::stream<Stream> socket{Stream(secrets.connect(server.connect()))};
    socket.handshake("a.test", "/chat");
    talk(socket);
  }).join();
}

FIBER_TEST_CASE("WebSocket over TLS without an HTTP server") {
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

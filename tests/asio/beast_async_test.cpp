// Tests Beast's asynchronous calls and ssl::stream on fibers, by use_fiber.
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>
#include <string>
#include <utility>
#include <weft/asio/executor.hpp>
#include <weft/asio/use_fiber.hpp>
#include <weft/go.hpp>
#if defined(WEFT_TEST_SSL)
#include <boost/asio/ssl.hpp>

#include "tests/tls/certificates.hpp"
#endif

#include "tests/asio/beast_test.hpp"
#include "tests/support/fiber_test.hpp"

namespace weft::test {

namespace {

namespace beast = boost::beast;
using asio::use_fiber;
using boost::asio::ip::tcp;

struct Sockets {
  explicit Sockets(asio::Context& context)
      : client(boost::asio::make_strand(context.get_executor())),
        server(boost::asio::make_strand(context.get_executor())) {
    tcp::acceptor acceptor(context.get_executor(), {boost::asio::ip::address_v4::loopback(), 0});
    auto connecting =
        spawn(kLarge, [&] { client.async_connect(acceptor.local_endpoint(), use_fiber); });
    acceptor.async_accept(server, use_fiber);
    connecting.join();
  }
  tcp::socket client;
  tcp::socket server;
};

}  // namespace

TEST_SUITE_BEGIN("asio/beast_async");

FIBER_TEST_CASE("Beast's asynchronous HTTP client and server exchange requests on fibers") {
  asio::Context context;
  Sockets pair(context);
  auto answering = spawn(kLarge, [&] {
    beast::flat_buffer buffer;
    beast::http::request<beast::http::string_body> request;
    beast::http::async_read(pair.server, buffer, request, use_fiber);
    beast::http::response<beast::http::string_body> response(beast::http::status::ok, 11);
    response.body() = "hello " + request.body();
    response.prepare_payload();
    beast::http::async_write(pair.server, response, use_fiber);
  });
  beast::http::request<beast::http::string_body> request(beast::http::verb::post, "/", 11);
  request.set(beast::http::field::host, "a");
  request.body() = "you";
  request.prepare_payload();
  beast::http::response<beast::http::string_body> response;
  spawn(kLarge, [&] {
    beast::http::async_write(pair.client, request, use_fiber);
    beast::flat_buffer buffer;
    beast::http::async_read(pair.client, buffer, response, use_fiber);
  }).join();
  CHECK(response.body() == "hello you");
  answering.join();
}

FIBER_TEST_CASE("a Beast WebSocket exchanges messages and closes with asynchronous calls") {
  asio::Context context;
  Sockets pair(context);
  auto echo = spawn(kLarge, [&] {
    beast::websocket::stream<tcp::socket> socket(std::move(pair.server));
    socket.async_accept(use_fiber);
    boost::system::error_code error;
    for (;;) {
      beast::flat_buffer buffer;
      socket.async_read(buffer, use_fiber[error]);
      if (error) break;
      socket.async_write(buffer.data(), use_fiber);
    }
    CHECK(error == beast::websocket::error::closed);
  });
  spawn(kLarge, [&] {
    beast::websocket::stream<tcp::socket> socket(std::move(pair.client));
    socket.async_handshake("a", "/", use_fiber);
    for (const std::size_t size : {1UL, 100'000UL}) {
      const std::string sent(size, 'x');
      auto writing = spawn(kLarge, [&] {  // Another fiber reads meanwhile.
        socket.async_write(boost::asio::buffer(sent), use_fiber);
      });
      beast::flat_buffer buffer;
      socket.async_read(buffer, use_fiber);
      CHECK(beast::buffers_to_string(buffer.data()) == sent);
      writing.join();
    }
    socket.async_close(beast::websocket::close_code::normal, use_fiber);
  }).join();
  echo.join();
}

#if defined(WEFT_TEST_SSL)
FIBER_TEST_CASE("ssl::stream performs handshakes, reads and writes on fibers") {
  namespace ssl = boost::asio::ssl;
  static const Certificates certificates;
  [[maybe_unused]] static const bool made = (certificates.make("asio", "a.test"), true);
  asio::Context context;
  Sockets pair(context);
  ssl::context secrets(ssl::context::tls_server);
  secrets.use_certificate_chain_file(certificates.certificate("asio"));
  secrets.use_private_key_file(certificates.key("asio"), ssl::context::pem);
  ssl::context trust(ssl::context::tls_client);
  trust.load_verify_file(certificates.authority());
  trust.set_verify_mode(ssl::verify_peer);
  auto echo = spawn(kLarge, [&] {
    ssl::stream<tcp::socket&> stream(pair.server, secrets);
    stream.async_handshake(ssl::stream_base::server, use_fiber);
    std::string text(5, '\0');
    boost::asio::async_read(stream, boost::asio::buffer(text), use_fiber);
    boost::asio::async_write(stream, boost::asio::buffer(text), use_fiber);
    boost::system::error_code error;
    stream.async_shutdown(use_fiber[error]);
  });
  spawn(kLarge, [&] {
    ssl::stream<tcp::socket&> stream(pair.client, trust);
    stream.async_handshake(ssl::stream_base::client, use_fiber);
    boost::asio::async_write(stream, boost::asio::buffer(std::string("hello")), use_fiber);
    std::string text(5, '\0');
    boost::asio::async_read(stream, boost::asio::buffer(text), use_fiber);
    CHECK(text == "hello");
    boost::system::error_code error;
    stream.async_shutdown(use_fiber[error]);
  }).join();
  echo.join();
}
#endif

TEST_SUITE_END();

}  // namespace weft::test

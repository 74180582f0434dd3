// Tests unmodified Boost.Beast and Asio's helper functions on fibers.
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>
#include <chrono>
#include <istream>
#include <string>
#include <thread>
#include <utility>
#include <weft/asio/stream.hpp>
#include <weft/go.hpp>
#include <weft/net/tcp_listener.hpp>
#if defined(WEFT_TEST_SSL)
#include <boost/asio/ssl.hpp>

#include "tests/tls/certificates.hpp"
#endif

#include "tests/asio/beast_test.hpp"
#include "tests/support/fiber_test.hpp"

namespace weft::test {

namespace {

namespace beast = boost::beast;
using namespace std::chrono_literals;
using PlainStream = asio::SyncStream<>;

struct Pair {
  PlainStream client;
  PlainStream server;
};

Pair connect() {
  auto listener = net::TcpListener::listen(net::Address::loopback_v4(0)).value;
  auto client = net::TcpStream::connect(listener.local_address().value).value;
  auto server = listener.accept().value;
  return {PlainStream(std::move(client)), PlainStream(std::move(server))};
}

}  // namespace

TEST_SUITE_BEGIN("asio/beast");

FIBER_TEST_CASE(
    "Asio's read and write functions transfer data on fibers and return Asio's errors") {
  Pair pair = connect();
  auto answering = spawn(kLarge, [&] {
    boost::asio::streambuf buffer;
    boost::asio::read_until(pair.server, buffer, '\n');
    std::string line;
    std::istream stream(&buffer);
    std::getline(stream, line);
    boost::asio::write(pair.server, boost::asio::buffer("got " + line));
    pair.server.close();
  });
  boost::asio::write(pair.client, boost::asio::buffer(std::string("hello\n")));
  std::string answer(100, '\0');
  boost::system::error_code error;
  answer.resize(boost::asio::read(pair.client, boost::asio::buffer(answer), error));
  CHECK(answer == "got hello");
  CHECK(error == boost::asio::error::eof);
  answering.join();
  Pair silent = connect();
  silent.client.stream().set_read_deadline(Deadline::after(1ms));
  char byte = 0;
  CHECK(silent.client.read_some(boost::asio::buffer(&byte, 1), error) == 0);
  CHECK(error == boost::asio::error::timed_out);
  silent.client.close();
  silent.client.read_some(boost::asio::buffer(&byte, 1), error);
  CHECK(error == boost::asio::error::operation_aborted);
}

THREAD_TEST_CASE(
    "a deadline or a close ends the reads and writes that plain threads make through Asio's "
    "functions") {
  Pair pair = connect();
  std::thread answering([&] {
    std::string question(6, '\0');
    boost::asio::read(pair.server, boost::asio::buffer(question));
    boost::asio::write(pair.server, boost::asio::buffer("got " + question));
  });
  boost::asio::write(pair.client, boost::asio::buffer(std::string("hello\n")));
  std::string answer(10, '\0');
  CHECK(boost::asio::read(pair.client, boost::asio::buffer(answer)) == answer.size());
  CHECK(answer == "got hello\n");
  answering.join();
  boost::system::error_code error;
  pair.client.stream().set_read_deadline(Deadline::after(1ms));
  CHECK(boost::asio::read(pair.client, boost::asio::buffer(answer), error) == 0);
  CHECK(error == boost::asio::error::timed_out);
  pair.client.stream().set_read_deadline(Deadline::never());
  pair.client.stream().set_write_deadline(Deadline::after(1ms));
  const std::string much(16 << 20, 'x');
  CHECK(boost::asio::write(pair.client, boost::asio::buffer(much), error) < much.size());
  CHECK(error == boost::asio::error::timed_out);
  auto closing = spawn([&] { pair.client.close(); });
  CHECK(boost::asio::read(pair.client, boost::asio::buffer(answer), error) == 0);
  CHECK(error == boost::asio::error::operation_aborted);
  closing.join();
}

FIBER_TEST_CASE("Beast's HTTP client and server exchange requests on fibers") {
  Pair pair = connect();
  auto answering = spawn(kLarge, [&] {
    beast::flat_buffer buffer;
    for (int i = 0; i < 3; ++i) {
      beast::http::request<beast::http::string_body> request;
      beast::http::read(pair.server, buffer, request);
      beast::http::response<beast::http::string_body> response(beast::http::status::ok, 11);
      response.body() = "hello " + request.body();
      response.prepare_payload();
      beast::http::write(pair.server, response);
    }
  });
  auto asking = spawn(kLarge, [&] {
    beast::flat_buffer buffer;
    for (int i = 0; i < 3; ++i) {
      beast::http::request<beast::http::string_body> request(beast::http::verb::post, "/", 11);
      request.set(beast::http::field::host, "a");
      request.body() = std::to_string(i);
      request.prepare_payload();
      beast::http::write(pair.client, request);
      beast::http::response<beast::http::string_body> response;
      beast::http::read(pair.client, buffer, response);
      CHECK(response.body() == "hello " + std::to_string(i));
    }
  });
  asking.join();
  answering.join();
}

FIBER_TEST_CASE("a Beast WebSocket exchanges messages on fibers and closes") {
  Pair pair = connect();
  auto echo = spawn(kLarge, [&] {
    beast::websocket::stream<PlainStream> socket(std::move(pair.server));
    socket.accept();
    boost::system::error_code error;
    for (;;) {
      beast::flat_buffer buffer;
      socket.read(buffer, error);
      if (error) break;
      socket.write(buffer.data());
    }
    CHECK(error == beast::websocket::error::closed);
  });
  auto client = spawn(kLarge, [&] {
    beast::websocket::stream<PlainStream> socket(std::move(pair.client));
    socket.handshake("a", "/");
    for (const std::size_t size : {1UL, 1000UL, 100'000UL}) {
      socket.write(boost::asio::buffer(std::string(size, 'x')));
      beast::flat_buffer buffer;
      socket.read(buffer);
      CHECK(beast::buffers_to_string(buffer.data()) == std::string(size, 'x'));
    }
    socket.close(beast::websocket::close_code::normal);
  });
  client.join();
  echo.join();
}

#if defined(WEFT_TEST_SSL)
FIBER_TEST_CASE("ssl::stream exchanges bytes over a weft stream and shuts down") {
  namespace ssl = boost::asio::ssl;
  static const Certificates certificates;
  [[maybe_unused]] static const bool made = (certificates.make("beast", "a.test"), true);
  ssl::context secrets(ssl::context::tls_server);
  secrets.use_certificate_chain_file(certificates.certificate("beast"));
  secrets.use_private_key_file(certificates.key("beast"), ssl::context::pem);
  ssl::context trust(ssl::context::tls_client);
  trust.load_verify_file(certificates.authority());
  trust.set_verify_mode(ssl::verify_peer);
  Pair pair = connect();
  const std::string sent(100'000, 'x');
  auto echo = spawn(kLarge, [&] {
    ssl::stream<PlainStream&> stream(pair.server, secrets);
    stream.handshake(ssl::stream_base::server);
    std::string text(sent.size(), '\0');
    boost::asio::read(stream, boost::asio::buffer(text));
    boost::asio::write(stream, boost::asio::buffer(text));
    stream.shutdown();
  });
  spawn(kLarge, [&] {
    ssl::stream<PlainStream&> stream(pair.client, trust);
    stream.handshake(ssl::stream_base::client);
    boost::asio::write(stream, boost::asio::buffer(sent));
    std::string text(sent.size() + 1, '\0');
    boost::system::error_code error;
    text.resize(boost::asio::read(stream, boost::asio::buffer(text), error));
    CHECK(text == sent);
    CHECK(error == boost::asio::error::eof);
    stream.shutdown();
  }).join();
  echo.join();
}
#endif

TEST_SUITE_END();

}  // namespace weft::test

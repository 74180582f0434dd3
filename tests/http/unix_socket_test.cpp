// Tests HTTP over Unix sockets.
#include <doctest/doctest.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string>
#include <system_error>
#include <weft/error.hpp>
#include <weft/go.hpp>
#include <weft/http/client.hpp>
#include <weft/http/error.hpp>
#include <weft/http/server.hpp>
#include <weft/http/websocket.hpp>
#include <weft/net/serve.hpp>
#include <weft/net/unix_listener.hpp>
#include <weft/net/unix_stream.hpp>

#include "tests/support/http_test.hpp"

namespace {

using namespace weft;
using namespace weft::test;

net::UnixAddress address_of_test() {
  static int count = 0;
  return net::UnixAddress::abstract("weft-http-test-" + std::to_string(::getpid()) + "-" +
                                    std::to_string(++count))
      .value;
}

TEST_SUITE_BEGIN("http/unix_socket");

FIBER_TEST_CASE("a server answers requests on a Unix socket and over TCP") {
  const net::UnixAddress address = address_of_test();
  auto local = net::UnixListener::listen(address).value;
  auto remote = net::TcpListener::listen(net::Address::loopback_v4(0)).value;
  const std::string port = std::to_string(remote.local_address().value.port());
  http::Server server([](http::Request& request, http::Response& response) {
    if (request.path() == "/socket") {
      (void)http::accept_websocket(request, response, [](http::WebSocket& socket) {
        (void)socket.send_text(socket.receive().value.data);
      });
      return;
    }
    const auto [peer, error] = request.peer_address();
    CHECK((!error || error == std::errc::address_family_not_supported));
    (void)response.send(std::string(error ? "local " : "remote ") + request.read_all().value);
  });
  const std::array<net::AnyListener, 2> both = {local, remote};
  auto loop = spawn([&] { return server.serve(both); });
  {
    http::Client client({.unix_socket = address});
    for (int i = 0; i < 2; ++i) {
      auto reply = client.send({.method = "POST", .url = "http://a/", .body = "hello"});
      CHECK_FALSE(reply.error);
      CHECK(reply.value.read_all().value == "local hello");
    }
    CHECK(client.stats().connections == 1);
    auto other = http::Client().get("http://127.0.0.1:" + port + "/");
    CHECK(other.value.read_all().value == "remote ");
    const auto [socket, error] =
        http::open_websocket({.url = "ws://a/socket", .unix_socket = address});
    CHECK_FALSE(error);
    if (socket != nullptr) {
      CHECK(socket->send_text("over a file"));
      CHECK(socket->receive().value.data == "over a file");
    }
  }
  CHECK(server.shutdown(Deadline::after(std::chrono::seconds(60))));
  CHECK(loop.join());
  CHECK(http::Client({.unix_socket = address}).get("http://a/").error ==
        std::errc::connection_refused);
}

FIBER_TEST_CASE("the context of a request over a Unix socket ends when the client hangs up") {
  const net::UnixAddress address = address_of_test();
  auto listener = net::UnixListener::listen(address).value;
  int count = 0;
  http::Server server([&](http::Request& request, http::Response&) {
    CHECK(wait_for_end(request.context()) == weft::Errc::cancelled);
    ++count;
  });
  auto loop = spawn([&] { return server.serve(listener); });
  // In the second round, the end of the stream follows the bytes of another request.
  for (const std::string& more : {std::string(), std::string(kGet)}) {
    auto stream = net::UnixStream::connect(address).value;
    CHECK_FALSE(stream.write_all(std::string(kGet) + more).error);
    (void)stream.shutdown(net::Shutdown::write);
    std::array<std::byte, 4096> answer;
    while (!stream.read_some(answer).error) {
    }
  }
  CHECK(count >= 2);
  (void)server.shutdown(Deadline::past());
  CHECK(loop.join());
}

TEST_SUITE_END();

}  // namespace

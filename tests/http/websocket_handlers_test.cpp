// Tests WebSockets that have a fiber only while messages arrive.
#include <atomic>
#include <exception>
#include <memory>
#include <string>
#include <system_error>
#include <weft/error.hpp>
#include <weft/go.hpp>
#include <weft/http/error.hpp>
#include <weft/http/websocket.hpp>
#include <weft/this_fiber.hpp>

#include "tests/http/websocket_client.hpp"
#include "tests/http/websocket_frames.hpp"
#include "tests/support/http_test.hpp"
#include "tests/support/sim_test.hpp"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

// Runs a server that answers each message, and records what its handlers get.
struct Answering {
  std::atomic<int> opened = 0;
  std::atomic<int> closed = 0;
  std::shared_ptr<http::WebSocket> newest;  // Set before `opened`.

  void accept(http::Request& request, http::Response& response) {
    const auto open = [this](const std::shared_ptr<http::WebSocket>& socket) {
      newest = socket;
      ++opened;
    };
    const auto pass = [](http::WebSocket& socket, const http::Message& message) {
      if (message.data == "throw") throw 1;
      CHECK(socket.send_text(message.data));
      if (message.data == "ask") CHECK(socket.send_text(socket.receive().value.data));
    };
    const auto close = [this](http::WebSocket& socket) {
      CHECK(socket.send_text("late") == weft::Errc::closed);
      ++closed;
    };
    // There are no timeouts, so only the connection can have a fiber without a stack.
    (void)http::accept_websocket(request, response,
                                 {.on_open = open, .on_message = pass, .on_close = close},
                                 {.ping = kNever, .message = kNever, .compress = false});
  }
};

http::Handler handler_of(Answering& answering) {
  return [&answering](http::Request& request, http::Response& response) {
    answering.accept(request, response);
  };
}

void wait_until_idle() {
  while (fibers_without_stack() == 0) this_fiber::yield();
}

TEST_SUITE_BEGIN("http/websocket_handlers");

FIBER_TEST_CASE("a WebSocket with handlers has no stack while it waits for a message") {
  Answering answering;
  const HttpServer server(handler_of(answering));
  std::string head;
  net::TcpStream stream = open(server, head);
  while (answering.opened == 0) this_fiber::yield();
  wait_until_idle();
  // Other fibers may send meanwhile, but not receive.
  CHECK(answering.newest->send_text("news"));
  CHECK(receive_frame(stream) == "\x81news");
  CHECK(answering.newest->receive().error == http::Errc::unsupported);
  // Sends a message and a half; the rest follows later.
  const std::string half = frame(0x81, "second");
  send_text(stream, frame(0x81, "first") + frame(0x89, "p") + half.substr(0, 8));
  CHECK(receive_frame(stream) ==
        "\x81"
        "first");
  CHECK(receive_frame(stream) == "\x8ap");
  wait_until_idle();
  send_text(stream, half.substr(8));
  CHECK(receive_frame(stream) == "\x81second");
  send_text(stream, frame(0x81, "ask"));
  CHECK(receive_frame(stream) ==
        "\x81"
        "ask");
  send_text(stream, frame(0x81, "answer"));
  CHECK(receive_frame(stream) ==
        "\x81"
        "answer");
  // A close by another fiber waits for the connection's fiber, which needs the peer's close frame.
  wait_until_idle();
  auto closing = spawn([&] { return answering.newest->close(4000); });
  CHECK(receive_frame(stream) == server_close(4000));
  send_text(stream, close_frame(4000));
  CHECK(closing.join());
  CHECK(answering.newest->close_code() == 4000);
  CHECK(receive_frame(stream).empty());
  while (answering.closed == 0) this_fiber::yield();
}

FIBER_TEST_CASE("the close handler of a WebSocket is called no matter how the connection ends") {
  Answering answering;
  net::TcpStream left;
  {
    const HttpServer server(handler_of(answering),
                            {.on_exception = [](const std::exception_ptr&) {}});
    std::string head;
    net::TcpStream failing = open(server, head);
    send_text(failing, frame(0x81, "throw"));
    CHECK(receive_frame(failing) == server_close(1011));
    failing.close();
    while (answering.closed == 0) this_fiber::yield();
    net::TcpStream broken = open(server, head);
    while (answering.opened < 2) this_fiber::yield();
    broken.close();
    while (answering.closed < 2) this_fiber::yield();
    left = open(server, head);
    while (answering.opened < 3) this_fiber::yield();
  }
  CHECK(answering.closed == 3);
  CHECK(answering.newest->send_text("later") == weft::Errc::closed);
  CHECK(answering.newest->close());
  CHECK(answering.newest->receive().error);
}

SIM_TEST_CASE(
    "a silent WebSocket with handlers receives pings and is closed when no pong arrives") {
  std::error_code unsent;
  const HttpServer server([&](http::Request& request, http::Response& response) {
    const auto pass = [](http::WebSocket&, const http::Message&) {};
    const auto close = [&](http::WebSocket& socket) { unsent = socket.send_text("late"); };
    (void)http::accept_websocket(request, response, {.on_message = pass, .on_close = close});
  });
  std::string head;
  net::TcpStream stream = open(server, head);
  answer_one_ping(stream);
  CHECK(world.now() >= 90s);
  CHECK(world.now() < 130s);
  CHECK(unsent == weft::Errc::closed);
}

FIBER_TEST_CASE("a stopping server closes WebSockets that have handlers, with code 1001") {
  HttpServer server([](http::Request& request, http::Response& response) {
    const auto pass = [](http::WebSocket&, const http::Message&) {};
    (void)http::accept_websocket(request, response, {.on_message = pass},
                                 {.ping = kNever, .message = kNever});
  });
  std::string head;
  net::TcpStream stream = open(server, head);
  while (fibers_without_stack() == 0) this_fiber::yield();
  auto stopping = spawn([&] { return server.stop(Deadline::after(60s)); });
  CHECK(receive_frame(stream) == server_close(1001));
  send_text(stream, close_frame(1001));
  CHECK(receive_frame(stream).empty());
  stream.close();
  CHECK(stopping.join());
}

TEST_SUITE_END();

}  // namespace

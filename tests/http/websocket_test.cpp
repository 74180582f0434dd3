// Tests servers and clients of WebSockets.
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <weft/error.hpp>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/http/error.hpp>
#include <weft/http/websocket.hpp>
#include <weft/this_fiber.hpp>

#include "libs/http/websocket/deflate.hpp"
#include "libs/http/websocket/handshake.hpp"
#include "tests/http/websocket_client.hpp"
#include "tests/http/websocket_frames.hpp"
#include "tests/support/http_test.hpp"
#include "tests/support/sim_test.hpp"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

// Sends each message back.
void echo(http::WebSocket& socket) {
  for (;;) {
    const auto [message, error] = socket.receive();
    if (error) return;
    const auto sent = message.is_text ? socket.send_text(message.data)
                                      : socket.send_binary(std::as_bytes(std::span(message.data)));
    CHECK(sent);
  }
}

void serve_echo(http::Request& request, http::Response& response) {
  const http::WebSocketOptions options{.ping = 30s, .close = 5s, .protocols = {"b", "a"}};
  (void)http::accept_websocket(request, response, echo, options);
}

TEST_SUITE_BEGIN("http/websocket");

FIBER_TEST_CASE(
    "a WebSocket server accepts a handshake, and answers messages, pings and close frames") {
  const HttpServer server(serve_echo);
  std::string head;
  net::TcpStream stream = open(server, head, "Sec-WebSocket-Protocol: x, a\r\n");
  CHECK(head.starts_with("HTTP/1.1 101 "));
  CHECK(head.find("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n") != std::string::npos);
  CHECK(head.find("Sec-WebSocket-Protocol: a\r\n") != std::string::npos);
  CHECK(head.find("Extensions") == std::string::npos);
  send_text(stream, frame(0x81, "hello") + frame(0x89, "p") + frame(0x82, "\xff"));
  CHECK(receive_frame(stream) == "\x81hello");
  CHECK(receive_frame(stream) == "\x8ap");
  CHECK(receive_frame(stream) == "\x82\xff");
  send_text(stream, close_frame(3000, "bye"));
  CHECK(receive_frame(stream) == server_close(3000));
  CHECK(receive_frame(stream).empty());
}

FIBER_TEST_CASE("a WebSocket server refuses invalid handshakes and frames") {
  const HttpServer server(serve_echo);
  CHECK(ask(server, kGet).at(0).status == 426);
  std::string short_key(kOpening);
  short_key.replace(short_key.find("dGhl"), 4, "");
  CHECK(ask(server, short_key + "\r\n").at(0).status == 400);
  std::string head;
  net::TcpStream stream = open(server, head);
  send_text(stream, frame(0x81, "\xff"));
  CHECK(receive_frame(stream) == server_close(1007));
  CHECK(receive_frame(stream).empty());
}

FIBER_TEST_CASE("a WebSocket server compresses its messages if the client offers compression") {
  if (!http::can_deflate()) return;
  const HttpServer server(serve_echo);
  std::string head;
  net::TcpStream stream = open(server, head, "Sec-WebSocket-Extensions: permessage-deflate\r\n");
  CHECK(head.find("Sec-WebSocket-Extensions: permessage-deflate;") != std::string::npos);
  const std::string text(300, 'a');
  std::string deflated;
  CHECK(http::MessageDeflater(15, kDropped).deflate(text, deflated));
  send_text(stream, frame(0xc1, deflated));
  const std::string answer = receive_frame(stream);
  CHECK(answer.at(0) == '\xc1');
  std::string inflated;
  CHECK(http::MessageInflater(kDropped).inflate(answer.substr(1), 300, inflated) ==
        http::Inflated::well);
  CHECK(inflated == text);
}

SIM_TEST_CASE("a silent WebSocket receives pings and is closed when no pong arrives") {
  const HttpServer server(serve_echo);
  std::string head;
  net::TcpStream stream = open(server, head);
  answer_one_ping(stream);
  CHECK(world.now() >= 90s);
  CHECK(world.now() < 100s);
}

SIM_TEST_CASE(
    "a server's WebSocket::close() waits for the client's close frame, but not beyond the "
    "deadline") {
  const bool answers = world.seed() % 2 == 0;
  std::error_code closed;
  {
    const HttpServer server([&](http::Request& request, http::Response& response) {
      (void)http::accept_websocket(request, response, [&](http::WebSocket& socket) {
        CHECK(socket.close(1005) == std::errc::invalid_argument);
        CHECK(socket.send_text("\xff") == http::Errc::malformed_frame);
        closed = socket.close(1001);
        CHECK(socket.close_code() == (answers ? 1001 : 0));
        CHECK(socket.send_text("late") == weft::Errc::closed);
        CHECK(socket.receive().error == weft::Errc::end_of_stream);
      });
    });
    std::string head;
    net::TcpStream stream = open(server, head);
    CHECK(receive_frame(stream) == server_close(1001));
    if (answers) send_text(stream, frame(0x81, "dropped") + close_frame(1001));
    CHECK(receive_all(stream).empty());
  }
  CHECK(closed == (answers ? std::error_code() : weft::Errc::timed_out));
}

SIM_TEST_CASE("a stop request cancels WebSocket::close() while another fiber receives") {
  std::error_code closed;
  {
    const HttpServer server([&](http::Request& request, http::Response& response) {
      (void)http::accept_websocket(request, response, [&](http::WebSocket& socket) {
        auto receiving = spawn([&] { return socket.receive(weft::Until::never()).error; });
        weft::this_fiber::sleep_for(1s);  // receive() now holds the reading end.
        std::stop_source stop;
        const auto call = weft::call_after(1s, [&] { (void)stop.request_stop(); });
        closed = socket.close(1000, {}, stop.get_token());
        CHECK(receiving.join());
      });
    });
    std::string head;
    net::TcpStream stream = open(server, head);
    CHECK(receive_frame(stream) == server_close(1000));
    CHECK(receive_all(stream).empty());
  }
  CHECK(closed == weft::Errc::cancelled);
}

SIM_TEST_CASE("a WebSocket accepts frames that arrive in pieces of any size") {
  const HttpServer server(serve_echo);
  std::string head;
  net::TcpStream stream = open(server, head);
  const std::string long_text(300, 'x');
  const std::string bytes = frame(0x81, "in") + frame(0x89, "p") + frame(0x82, long_text);
  for (const char byte : bytes) {
    send_text(stream, {&byte, 1});
    this_fiber::sleep_for(1ms);
  }
  CHECK(receive_frame(stream) == "\x81in");
  CHECK(receive_frame(stream) == "\x8ap");
  CHECK(receive_frame(stream).size() == 1 + 126);  // Two more bytes have the length.
}

FIBER_TEST_CASE("a WebSocket message that cannot be compressed may be as long as the size limit") {
  const HttpServer server([](http::Request& request, http::Response& response) {
    (void)http::accept_websocket(request, response, echo, {.message_bytes = 4096});
  });
  const auto [socket, error] =
      http::open_websocket({.url = url_of(server), .options = {.message_bytes = 4096}});
  REQUIRE_FALSE(error);
  std::string data(4096, '\0');
  std::uint32_t state = 1;
  for (char& byte : data) byte = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  CHECK(socket->send_binary(std::as_bytes(std::span(data))));
  CHECK(socket->receive().value.data == data);
}

SIM_TEST_CASE(
    "WebSocket::receive() does not wait for a blocked sender when a ping must be answered") {
  std::string received;
  Event over;
  const HttpServer server([&](http::Request& request, http::Response& response) {
    (void)http::accept_websocket(request, response, [&](http::WebSocket& socket) {
      // The network cannot buffer this text without a reader.
      auto sender = spawn([&] { CHECK_FALSE(socket.send_text(std::string(4 << 20, 'x'), 20s)); });
      received = socket.receive(10s).value.data;
      over.set();
      sender.join();
    });
  });
  std::string head;
  net::TcpStream stream = open(server, head);
  this_fiber::sleep_for(1s);  // The sender waits by now.
  send_text(stream, frame(0x89, "p") + frame(0x81, "hello"));
  over.wait();
  CHECK(received == "hello");
}

FIBER_TEST_CASE(
    "WebSocket::receive() loses no bytes when it times out, and other fibers can send while it "
    "waits") {
  const HttpServer server([](http::Request& request, http::Response& response) {
    (void)http::accept_websocket(request, response, [](http::WebSocket& socket) {
      CHECK(socket.receive(Deadline::past()).error == weft::Errc::timed_out);
      auto sender = spawn([&] { CHECK(socket.send_text("send the rest")); });
      const auto [message, error] = socket.receive();
      CHECK_FALSE(error);
      CHECK(message.data == "in two pieces");
      sender.join();
    });
  });
  std::string head;
  const std::string bytes = frame(0x81, "in two pieces");
  net::TcpStream stream = open(server, head);
  send_text(stream, bytes.substr(0, 9));
  CHECK(receive_frame(stream) == "\x81send the rest");
  send_text(stream, bytes.substr(9));
  CHECK(receive_frame(stream) == server_close(1000));
  send_text(stream, close_frame(1000));
  CHECK(receive_frame(stream).empty());
}

FIBER_TEST_CASE("a stopping server closes its WebSockets with code 1001") {
  HttpServer server(serve_echo);
  std::string head;
  net::TcpStream stream = open(server, head);
  auto stopping = spawn([&] { return server.stop(Deadline::after(60s)); });
  CHECK(receive_frame(stream) == server_close(1001));
  send_text(stream, close_frame(1001));
  CHECK(receive_frame(stream).empty());
  stream.close();
  CHECK(stopping.join());
}

FIBER_TEST_CASE("a client's WebSocket exchanges messages, and compresses large messages") {
  const HttpServer server(serve_echo);
  auto [socket, error] =
      http::open_websocket({.url = url_of(server), .options = {.protocols = {"a"}}});
  CHECK_FALSE(error);
  if (error) return;
  CHECK(socket->protocol() == "a");
  const std::string large(70'000, 'x');
  CHECK(socket->send_text("small"));
  CHECK(socket->send_binary(std::as_bytes(std::span(large))));
  CHECK(socket->receive().value.data == "small");
  const auto echoed = socket->receive();
  CHECK_FALSE(echoed.value.is_text);
  CHECK(echoed.value.data == large);
  CHECK(socket->close(4000, "done"));
  CHECK(socket->close_code() == 4000);
}

FIBER_TEST_CASE(
    "both endpoints of a WebSocket keep their compression contexts if both set compress_context") {
  const http::WebSocketOptions options{.compress_bytes = 1, .compress_context = true};
  const HttpServer server([&](http::Request& request, http::Response& response) {
    (void)http::accept_websocket(request, response, echo, options);
  });
  const auto [socket, error] = http::open_websocket({.url = url_of(server), .options = options});
  CHECK_FALSE(error);
  if (error) return;
  // Every third message cannot be compressed, so it is not part of a context.
  std::uint32_t state = 1;
  for (int i = 0; i < 9; ++i) {
    std::string data = R"({"name":"a rather long name","number":)" + std::to_string(i) + "}";
    if (i % 3 == 2) data += "further";
    for (char& byte : data) {
      if (i % 3 == 2) byte = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
    }
    CHECK(socket->send_binary(std::as_bytes(std::span(data))));
    CHECK(socket->receive().value.data == data);
  }
}

SIM_TEST_CASE("a WebSocket ends with code 1008 when the peer does not complete a message in time") {
  const bool waits = world.seed() % 2 == 0;
  std::error_code error;
  const auto talk = [&](http::WebSocket& socket) { error = socket.receive().error; };
  const HttpServer server([&](http::Request& request, http::Response& response) {
    const http::WebSocketOptions options{.message = 10s};
    if (waits) {
      (void)http::accept_websocket(request, response, talk, options);
    } else {
      const auto pass = [](http::WebSocket&, const http::Message&) { CHECK(false); };
      (void)http::accept_websocket(request, response, {.on_message = pass}, options);
    }
  });
  std::string head;
  net::TcpStream stream = open(server, head);
  this_fiber::sleep_for(20s);  // No limit applies before a message begins.
  const auto began = world.now();
  send_text(stream, frame(0x01, "a"));
  auto sender = spawn([&] {
    for (int i = 0; i < 100; ++i) {
      this_fiber::sleep_for(1s);
      send_text(stream, frame(0x00, "b"));
    }
  });
  CHECK(receive_frame(stream) == server_close(1008));
  CHECK(world.now() - began >= 10s);
  CHECK(world.now() - began < 12s);
  stream.close();
  sender.join();
  CHECK(error == (waits ? http::Errc::message_too_slow : std::error_code()));
}

FIBER_TEST_CASE(
    "a client's open_websocket() fails when the server has not accepted the handshake") {
  const HttpServer server([](http::Request& request, http::Response& response) {
    if (request.path() == "/none") return;
    CHECK(response.upgrade("websocket", [](http::Upgraded) {}));
    const auto accept = http::accept_key(*request.header("sec-websocket-key"));
    response.add_header("Sec-WebSocket-Accept", request.path() == "/key" ? "x" : *accept);
    if (request.path() == "/protocol") response.add_header("Sec-WebSocket-Protocol", "x");
    if (request.path() == "/code") response.add_header("Sec-WebSocket-Extensions", "x");
  });
  for (const std::string path : {"none", "key", "protocol", "code"}) {
    CHECK(http::open_websocket({.url = url_of(server) + path}).error == http::Errc::unsupported);
  }
  CHECK_FALSE(http::open_websocket({.url = url_of(server)}).error);
  CHECK_FALSE(http::open_websocket({.url = "WS" + url_of(server).substr(2)}).error);
  CHECK(http::open_websocket({.url = "wss://127.0.0.1/"}).error == http::Errc::unsupported);
  CHECK(http::open_websocket({.url = "ws://a b/"}).error == http::Errc::malformed_url);
  CHECK(http::open_websocket({.url = url_of(server), .headers = {{"a", "b\n"}}}).error ==
        http::Errc::malformed_call);
}

SIM_TEST_CASE("a client's open_websocket() does not wait beyond the deadline") {
  auto listener = net::TcpListener::listen(net::Address::loopback_v4(0)).value;
  const std::string port = std::to_string(listener.local_address().value.port());
  const auto opened = http::open_websocket({.url = "ws://127.0.0.1:" + port + "/"}, 5s);
  CHECK(opened.error == weft::Errc::timed_out);
  CHECK(world.now() >= 5s);
}

TEST_SUITE_END();

}  // namespace

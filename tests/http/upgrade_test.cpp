// Tests connections that continue with another protocol.
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <weft/blocking.hpp>
#include <weft/go.hpp>
#include <weft/http/forward.hpp>
#include <weft/http/reverse_proxy.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/http_test.hpp"
#include "tests/support/sim_test.hpp"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

constexpr std::string_view kUpgrade =
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: echo\r\n\r\n";

TEST_SUITE_BEGIN("http/upgrade");

FIBER_TEST_CASE(
    "an upgraded connection passes bytes that arrived with the request to the upgrade callback") {
  const HttpServer server([](http::Request&, http::Response& response) {
    const auto done = response.upgrade("echo", [](http::Upgraded upgraded) {
      std::string text(upgraded.early);
      text += receive_until(upgraded.stream, "\n");
      send_text(upgraded.stream, text);
    });
    if (!done) (void)response.send("no");
  });
  net::TcpStream stream = server.connect();
  CHECK(ask_once(stream, kGet).body == "no");
  send_text(stream,
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: echo\r\n\r\n"
            "early ");
  const std::string head = receive_until(stream, "\r\n\r\n");
  CHECK(head.starts_with("HTTP/1.1 101 Switching Protocols\r\n"));
  CHECK(head.find("Upgrade: echo\r\n") != std::string::npos);
  send_text(stream, "and late\n");
  CHECK(receive_all(stream) == "early and late\n");
}

FIBER_TEST_CASE("an idle upgraded connection has no running fiber and no stack") {
  constexpr std::size_t kClients = 50;
  std::atomic<std::size_t> talks = 0;
  HttpServer server([&](http::Request&, http::Response& response) {
    // Sends each line back, and counts the lines.
    const auto done = response.upgrade("echo", [&, lines = 0](http::Upgraded upgraded) mutable {
      ++talks;
      if (upgraded.stop.stop_requested()) {
        send_text(upgraded.stream, "good-bye");
        return net::Next::idle;
      }
      std::string line = receive_until(upgraded, "\n");
      if (!line.ends_with('\n')) return net::Next::close;
      line = std::to_string(++lines) + " " + line;
      CHECK_FALSE(upgraded.write_all(std::as_bytes(std::span(line))).error);
      return net::Next::idle;
    });
    CHECK(done);
  });
  std::vector<net::TcpStream> clients;
  for (std::size_t i = 0; i < kClients; ++i) {
    clients.push_back(server.connect());
    send_text(clients.back(), kUpgrade);
    (void)receive_until(clients.back(), "\r\n\r\n");
    send_text(clients.back(), "a\n");
    CHECK(receive_until(clients.back(), "\n") == "1 a\n");
  }
  // A handler that has answered is about to become idle.
  while (fibers_without_stack() < kClients) this_fiber::yield();
  CHECK(server.server().stats().connections == kClients);
  const std::size_t before = talks;
  for (net::TcpStream& client : clients) {
    send_text(client, "b\nc\n");  // The first talk reads only one line.
    CHECK(receive_until(client, "2 b\n") == "2 b\n");
    CHECK(receive_until(client, "\n") == "3 c\n");
  }
  CHECK(talks == before + 2 * kClients);
  CHECK(clients.back().shutdown(net::Shutdown::write));
  CHECK(receive_all(clients.back()).empty());
  clients.pop_back();
  CHECK(server.stop(Deadline::never()));
  for (net::TcpStream& client : clients) CHECK(receive_all(client) == "good-bye");
}

FIBER_TEST_CASE(
    "an upgrade callback writes the response itself when the upgrade has no protocol name") {
  const HttpServer server([](http::Request&, http::Response& response) {
    CHECK(response.upgrade({}, [](http::Upgraded upgraded) {
      CHECK(upgraded.early == "early");
      std::array<std::byte, 3> part{};
      CHECK(upgraded.read_some(part).value == 3);
      CHECK(upgraded.early == "ly");
      send_text(upgraded.stream, "its own answer");
    }));
  });
  net::TcpStream stream = server.connect();
  send_text(stream, std::string(kUpgrade) + "early");
  CHECK(receive_all(stream) == "its own answer");
}

FIBER_TEST_CASE("a deadline or a stop request ends reads and writes of an upgraded connection") {
  HttpServer server([](http::Request&, http::Response& response) {
    CHECK(response.upgrade({}, [](http::Upgraded upgraded) {
      std::byte byte{};
      const std::span<std::byte> one(&byte, 1);
      const std::vector<std::byte> much(16 << 20);
      CHECK(upgraded.stream.set_send_buffer(64 * 1024));
      std::stop_source source;
      auto stopper = spawn([&] { (void)source.request_stop(); });
      CHECK(upgraded.read_some(one, Deadline::after(1ms)).error == weft::Errc::timed_out);
      CHECK(upgraded.read_some(one, source.get_token()).error == weft::Errc::cancelled);
      stopper.join();
      CHECK(upgraded.write_all(much, Deadline::after(1ms)).error == weft::Errc::timed_out);
      CHECK(upgraded.write_all(much, source.get_token()).error == weft::Errc::cancelled);
      blocking([&] {
        CHECK(upgraded.read_some(one, Deadline::after(1ms)).error == weft::Errc::timed_out);
        CHECK(upgraded.write_all(much, source.get_token()).error == weft::Errc::cancelled);
      });
      while (upgraded.write_some(much, Deadline::past()).error != weft::Errc::timed_out) {
      }
      CHECK(upgraded.write_some(much, source.get_token()).error == weft::Errc::cancelled);
    }));
  });
  net::TcpStream stream = server.connect();
  CHECK(stream.set_receive_buffer(64 * 1024));
  send_text(stream, kUpgrade);
  std::byte first{};
  CHECK(stream.read_exactly(std::span(&first, 1)).value == 1);
  while (server.server().stats().connections > 0) this_fiber::yield();
}

FIBER_TEST_CASE("the HTTP server's idle time limit does not close an upgraded connection") {
  std::atomic<int> talks = 0;
  const HttpServer server(
      [&](http::Request&, http::Response& response) {
        const auto done = response.upgrade("wait", [&](http::Upgraded upgraded) {
          std::byte byte{};
          // The talk is called when bytes arrive, not because time has passed.
          if (talks++ > 0 && upgraded.read_some(std::span(&byte, 1), Deadline::past()).error) {
            return net::Next::close;
          }
          return net::Next::idle;
        });
        if (!done) (void)response.send("no");
      },
      {.limits = {.idle = 1ms}});
  // A request after the idle time finds its connection closed.
  net::TcpStream upgraded;
  do {
    upgraded = server.connect();
    send_text(upgraded, kUpgrade);
  } while (receive_until(upgraded, "\r\n\r\n").empty());
  while (talks < 1) this_fiber::yield();
  // The server checks other idle connections later, and closes them.
  for (int i = 0; i < 3; ++i) {
    net::TcpStream other = server.connect();
    const Answer answer = ask_once(other, kGet);
    if (answer.status != 0) CHECK(answer.body == "no");
    CHECK(receive_all(other).empty());
  }
  CHECK(talks == 1);
  send_text(upgraded, "x");
  while (talks < 2) this_fiber::yield();
  CHECK(upgraded.shutdown(net::Shutdown::write));
  CHECK(receive_all(upgraded).empty());
  CHECK(talks == 3);
}

FIBER_TEST_CASE(
    "a reverse proxy forwards an upgrade and the bytes that follow it, and then relays the "
    "connection") {
  const HttpServer origin([](http::Request&, http::Response& response) {
    CHECK(response.upgrade("echo", [](http::Upgraded upgraded) {
      std::string text(upgraded.early);
      text += receive_until(upgraded.stream, "\n");
      send_text(upgraded.stream, text);
    }));
  });
  HttpServer proxy([&origin](http::Request& request, http::Response& response) {
    CHECK(http::asks_for_upgrade(request));
    CHECK(http::forward_upgrade(request, response, "http://" + origin.address().to_string()));
  });
  net::TcpStream stream = proxy.connect();
  send_text(stream, std::string(kUpgrade) + "early ");
  CHECK(receive_until(stream, "\r\n\r\n").find("\r\nUpgrade: echo\r\n") != std::string::npos);
  send_text(stream, "and late\n");
  CHECK(receive_until(stream, "\n") == "early and late\n");
  net::TcpStream waiting = proxy.connect();
  send_text(waiting, kUpgrade);
  CHECK(receive_until(waiting, "\r\n\r\n").starts_with("HTTP/1.1 101 "));
  proxy.stop(Deadline::after(1h));  // Ends the relay that still runs.
  CHECK(receive_all(waiting).empty());
}

FIBER_TEST_CASE("a reverse proxy returns the origin's status when the origin refuses an upgrade") {
  const HttpServer origin(
      [](http::Request&, http::Response& response) { response.set_status(403); });
  const HttpServer proxy([&origin](http::Request& request, http::Response& response) {
    const auto done = http::forward_upgrade(
        request, response,
        request.path() == "/" ? "http://" + origin.address().to_string() : "https://a");
    if (!done) response.set_status(502);
  });
  net::TcpStream stream = proxy.connect();
  CHECK(ask_once(stream, kUpgrade).status == 403);
  CHECK(ask(proxy, kGet).at(0).status == 502);
  const std::string rest = " HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c, x\r\n\r\n";
  CHECK(ask(proxy, "GET /" + rest).at(0).status == 502);
  CHECK(ask(proxy, "GET /secure" + rest).at(0).status == 502);
}

SIM_TEST_CASE("a reverse proxy limits its wait for an upgrade and for 100 Continue") {
  const HttpServer silent(
      [](http::Request& request, http::Response&) { (void)wait_for_end(request.context()); });
  const HttpServer slow([](http::Request&, http::Response& response) {
    response.set_status(401);
    CHECK(response.write("refu"));
    this_fiber::sleep_for(3s);
    CHECK(response.write("sal"));
  });
  const auto ask_through_proxy = [](const HttpServer& origin, std::string_view request) {
    http::ReverseProxy proxy({.origins = {"http://" + origin.address().to_string()},
                              .client = {.continue_wait = kNever},
                              .answer = 2s});
    const HttpServer server(std::ref(proxy));
    net::TcpStream stream = server.connect();
    send_text(stream, request);
    return receive_all(stream);
  };
  const std::string_view upgrade =
      "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, close\r\nUpgrade: x\r\n\r\n";
  const std::string_view post =
      "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: 100-continue\r\n"
      "Content-Length: 1\r\n\r\n";
  const auto began = world.now();
  CHECK(ask_through_proxy(silent, upgrade).starts_with("HTTP/1.1 504 "));
  CHECK(ask_through_proxy(silent, post).starts_with("HTTP/1.1 504 "));
  CHECK(world.now() - began < 5s);
  // The time limit no longer applies after the head of a refusal.
  const std::string refusal = ask_through_proxy(slow, upgrade);
  CHECK(refusal.starts_with("HTTP/1.1 401 "));
  CHECK(refusal.ends_with("\r\n3\r\nsal\r\n0\r\n\r\n"));
}

TEST_SUITE_END();

}  // namespace

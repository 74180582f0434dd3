// Tests servers that stop while a client has just connected, or stays for a long time.
#include <array>
#include <atomic>
#include <chrono>
#include <stop_token>
#include <vector>
#include <weft/barrier.hpp>
#include <weft/error.hpp>
#include <weft/event.hpp>
#include <weft/http/server.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/http_test.hpp"
#include "tests/support/parked.hpp"
#include "tests/support/sim_test.hpp"

namespace {

using namespace weft;
using namespace weft::test;

TEST_SUITE_BEGIN("http/stop");

SIM_TEST_CASE(
    "a stopping server still serves a client that had to wait because of max_connections") {
  http::ServerOptions options;
  options.max_connections = 1;
  Event begun;
  Event go_on;
  HttpServer server(
      [&](http::Request& request, http::Response& response) {
        if (request.path() == "/first") {
          begun.set();
          go_on.wait();
        }
        (void)response.send("hello");
      },
      options);
  net::TcpStream first = server.connect();
  send_text(first, "GET /first HTTP/1.1\r\nHost: a\r\n\r\n");
  begun.wait();
  std::vector<net::TcpStream> waiting;
  for (int i = 0; i < 5; ++i) {
    waiting.push_back(server.connect());
    send_text(waiting.back(), kGet);
  }
  auto stopped = spawn([&] { return server.server().shutdown(Deadline::never()); });
  for (net::TcpStream& stream : waiting) {
    std::string text = receive_all(stream);
    const Answer answer = take_answer(text);
    CHECK(answer.body == "hello");
    CHECK(answer.has("Connection: close"));
  }
  go_on.set();
  CHECK(receive_all(first).ends_with("hello"));
  CHECK(stopped.join());
}

SIM_TEST_CASE("a client that connected just before the server stopped may still send a request") {
  HttpServer server(say_hello);
  net::TcpStream fresh = server.connect();
  while (server.server().stats().accepted < 1) this_fiber::yield();
  net::TcpStream idle = server.connect();
  CHECK(ask_once(idle, kGet).body == "hello");
  auto stopped = spawn([&] { return server.server().shutdown(Deadline::never()); });
  CHECK(receive_all(idle).empty());  // The stop has reached all connections.
  send_text(fresh, kGet);
  std::string text = receive_all(fresh);
  const Answer answer = take_answer(text);
  CHECK(answer.body == "hello");
  CHECK(answer.has("Connection: close"));
  CHECK(stopped.join());
}

// Takes half a second of real time. The other cases about the delay of a stop do not check real
// time.
FIBER_TEST_CASE_WITH("a client that sends no request delays a stop only briefly",
                     {.workers = {2}}) {
  HttpServer server(say_hello);
  net::TcpStream silent = server.connect();
  while (server.server().stats().accepted < 1) this_fiber::yield();
  CHECK(server.stop(Deadline::never()));
  CHECK(receive_all(silent).empty());
}

SIM_TEST_CASE("an unfinished TLS handshake does not delay a stop") {
  Event begun;
  http::ServerOptions options;
  options.limits.head = kNever;
  options.secure = [&](net::TcpStream&, const Until& until) {
    begun.set();
    Event never;
    CHECK_FALSE(never.wait_until(until));
    return http::NewLayer{.error = until.reason()};
  };
  HttpServer server(say_hello, options);
  net::TcpStream stream = server.connect();
  send_text(stream, "x");
  begun.wait();
  CHECK(server.stop(Deadline::never()));
  CHECK(receive_all(stream).empty());
  CHECK(server.server().stats().malformed == 0);
}

FIBER_TEST_CASE("an upgraded connection gets a stop request when its server stops") {
  HttpServer server([](http::Request&, http::Response& response) {
    (void)response.upgrade("wait", [](http::Upgraded upgraded) {
      std::array<std::byte, 16> bytes;
      CHECK(upgraded.stream.read_some(bytes, upgraded.stop).error == Errc::cancelled);
      send_text(upgraded.stream, "good-bye");
    });
  });
  net::TcpStream stream = server.connect();
  send_text(stream, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: wait\r\n\r\n");
  (void)receive_until(stream, "\r\n\r\n");
  CHECK(server.stop(Deadline::never()));
  CHECK(receive_all(stream) == "good-bye");
}

FIBER_TEST_CASE(
    "a shutdown() without a grace period ends another shutdown() that would wait longer") {
  Event begun;
  HttpServer server([&](http::Request& request, http::Response&) {
    begun.set();
    CHECK(wait_for_end(request.context()));
  });
  net::TcpStream stream = server.connect();
  send_text(stream, kGet);
  begun.wait();
  auto patient = spawn([&] { return server.server().shutdown(Deadline::never()); });
  while (!patient.done() && parked_fibers(runtime, "wait group") == 0) this_fiber::yield();
  CHECK_FALSE(server.server().shutdown(Deadline::past()));
  (void)patient.join();
}

FIBER_TEST_CASE("shutdown() called by a handler does not wait for that handler") {
  // A client may get its answer before the handler releases its place: three places, so that no
  // request is refused.
  for (const std::size_t max_running : {std::size_t{3}, kUnlimited}) {
    http::Server* stopped = nullptr;
    std::atomic<int> in_time{0};
    Barrier both(2);
    HttpServer server(
        [&](http::Request& request, http::Response& response) {
          if (request.path() != "/quit") return say_hello(request, response);
          both.arrive_and_wait();
          if (stopped->shutdown(Deadline::never())) ++in_time;
          (void)response.send("bye");
        },
        {.max_running = max_running});
    stopped = &server.server();
    net::TcpStream idle = server.connect();
    CHECK(ask_once(idle, kGet).status == 200);
    // Two clients run at a time, and neither waits for the other.
    WaitGroup clients;
    for (int i = 0; i < 2; ++i) {
      clients.go([&] {
        net::TcpStream stream = server.connect();
        const Answer answer = ask_once(stream, "GET /quit HTTP/1.1\r\nHost: a\r\n\r\n");
        CHECK(answer.body == "bye");
        CHECK(answer.has("Connection: close"));
      });
    }
    clients.wait();
    CHECK(receive_all(idle).empty());
    CHECK(in_time == 2);
    CHECK(server.stop(Deadline::never()));
  }
}

FIBER_TEST_CASE("a handler can still answer after a shutdown() that it called has timed out") {
  http::Server* stopped = nullptr;
  Event begun;
  Event closed;  // No answer of the busy handler precedes the close.
  HttpServer server([&](http::Request& request, http::Response& response) {
    if (request.path() == "/quit") {
      begun.wait();
      CHECK_FALSE(stopped->shutdown(Deadline::past()));
      return void(response.send("bye"));
    }
    begun.set();
    CHECK(wait_for_end(request.context()));
    closed.wait();
  });
  stopped = &server.server();
  net::TcpStream busy = server.connect();
  send_text(busy, kGet);
  net::TcpStream stream = server.connect();
  CHECK(ask_once(stream, "GET /quit HTTP/1.1\r\nHost: a\r\n\r\n").body == "bye");
  CHECK(receive_all(busy).empty());
  closed.set();
}

FIBER_TEST_CASE("shutdown() called by an upgrade callback does not wait for that callback") {
  http::Server* stopped = nullptr;
  HttpServer server([&](http::Request&, http::Response& response) {
    (void)response.upgrade("quit", [&](http::Upgraded upgraded) {
      CHECK(stopped->shutdown(Deadline::never()));
      send_text(upgraded.stream, "bye");
    });
  });
  stopped = &server.server();
  net::TcpStream stream = server.connect();
  send_text(stream, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: quit\r\n\r\n");
  (void)receive_until(stream, "\r\n\r\n");
  CHECK(receive_all(stream) == "bye");
}

FIBER_TEST_CASE(
    "shutdown() called by a handler does not wait for requests that need the handler's slot") {
  Event begun;
  Event go_on;
  http::ServerOptions options;
  options.max_running = 1;
  options.max_queued = 1;
  http::Server* server = nullptr;
  HttpServer serving(
      [&](http::Request& request, http::Response& response) {
        (void)response.send("hello");
        if (request.path() != "/first") return;
        begun.set();
        go_on.wait();
        CHECK_FALSE(server->shutdown(std::chrono::milliseconds(1)));
      },
      options);
  server = &serving.server();
  net::TcpStream first = serving.connect();
  send_text(first, "GET /first HTTP/1.1\r\nHost: a\r\n\r\n");
  begun.wait();
  net::TcpStream second = serving.connect();
  send_text(second, kGet);
  while (server->stats().requests < 2) this_fiber::yield();
  go_on.set();
  CHECK(receive_answer(first).body == "hello");
  serving.join();
}

FIBER_TEST_CASE("serve() returns after stop() when pending requests have been answered") {
  Event begun;
  Event go_on;
  HttpServer server([&](http::Request&, http::Response& response) {
    begun.set();
    go_on.wait();
    (void)response.send("hello");
  });
  net::TcpStream stream = server.connect();
  send_text(stream, kGet);
  begun.wait();
  server.server().stop();
  CHECK_FALSE(server.has_ended());
  go_on.set();
  const Answer answer = receive_answer(stream);
  CHECK(answer.body == "hello");
  CHECK(answer.has("Connection: close"));
  server.join();
  CHECK(server.server().stats().connections == 0);
}

FIBER_TEST_CASE(
    "a stop request through ServerOptions::stop gives pending requests only the grace period") {
  std::stop_source stop;
  Event begun;
  Event closed;  // No answer precedes the close.
  HttpServer server(
      [&](http::Request& request, http::Response&) {
        begun.set();
        CHECK(wait_for_end(request.context()));
        closed.wait();
      },
      {.grace = std::chrono::milliseconds(1), .stop = stop.get_token()});
  net::TcpStream stream = server.connect();
  send_text(stream, kGet);
  begun.wait();
  (void)stop.request_stop();
  CHECK(receive_all(stream).empty());
  closed.set();
  server.join();
}

TEST_SUITE_END();

}  // namespace

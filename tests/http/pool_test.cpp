// Tests requests that get no slot in a pool, or get it late.
#include <atomic>
#include <chrono>
#include <weft/event.hpp>
#include <weft/http/server.hpp>
#include <weft/pool.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/http_test.hpp"
#include "tests/support/sim_test.hpp"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

TEST_SUITE_BEGIN("http/pool");

FIBER_TEST_CASE(
    "a server that answers with 503 because its pool is closed keeps the connection unless the "
    "request body is too large") {
  FiberPool pool({.capacity = 1});
  pool.close(Close::drain);
  http::ServerOptions options;
  options.pool = &pool;
  const HttpServer server([](http::Request&, http::Response&) {}, options);
  net::TcpStream stream = server.connect();
  for (int i = 0; i < 2; ++i) {
    const Answer answer = ask_once(stream, kGet);
    CHECK(answer.status == 503);
    CHECK_FALSE(answer.has("Connection: close"));
  }
  // The body is too large for the server to read and drop it.
  const Answer answer =
      ask_once(stream, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 500000\r\n\r\n");
  CHECK(answer.status == 503);
  CHECK(answer.has("Connection: close"));
  CHECK(receive_all(stream).empty());
}

SIM_TEST_CASE("a request that has been queued for too long gets 503 with Retry-After") {
  constexpr auto kLimit = 1min;
  FiberPool pool({.capacity = 1, .queue_capacity = 10});
  http::ServerOptions options;
  options.pool = &pool;
  options.limits.request = kLimit;
  std::atomic<int> second{0};
  Event begun;
  Event go_on;
  const HttpServer server(
      [&](http::Request& request, http::Response& response) {
        if (request.path() == "/second") {
          ++second;
        } else {
          begun.set();
          go_on.wait();
        }
        (void)response.send({});
      },
      options);
  auto first = spawn([&] {
    net::TcpStream stream = server.connect();
    CHECK(ask_once(stream, kGet).status == 200);
  });
  begun.wait();
  net::TcpStream stream = server.connect();
  send_text(stream, "GET /second HTTP/1.1\r\nHost: a\r\n\r\n");
  while (pool.stats().queued < 1) this_fiber::yield();
  this_fiber::sleep_for(kLimit);
  go_on.set();
  first.join();
  const std::string head = receive_until(stream, "\r\n\r\n");
  CHECK(head.starts_with("HTTP/1.1 503 "));
  CHECK(head.find("\r\nRetry-After: 1\r\n") != std::string::npos);
  CHECK(second == 0);
}

SIM_TEST_CASE(
    "a server answers a queued request with 503 as soon as the request's time limit has passed") {
  http::ServerOptions options;
  options.max_running = 1;
  options.max_queued = 1;
  options.limits.request = 1min;
  HttpServer server(
      [](http::Request&, http::Response& response) {
        this_fiber::sleep_for(1h);  // Ignores the limit.
        (void)response.send("late");
      },
      options);
  net::TcpStream first = server.connect();
  send_text(first, kGet);
  this_fiber::sleep_for(1s);
  net::TcpStream queued = server.connect();
  send_text(queued, kGet);
  const auto began = Clock::now();
  CHECK(receive_answer(queued).status == 503);
  CHECK(Clock::now() - began >= 59s);
  CHECK(Clock::now() - began <= 61s);
  CHECK(receive_answer(first).body == "late");
  send_text(queued, kGet);
  CHECK(receive_answer(queued).body == "late");
  CHECK(server.server().stats().refused == 1);
}

SIM_TEST_CASE("the time limit of a request starts when its head is complete") {
  constexpr auto kLimit = 1min;
  http::ServerOptions options;
  options.limits.request = kLimit;
  const HttpServer server(
      [&](http::Request& request, http::Response& response) {
        this_fiber::sleep_for(kLimit);
        CHECK(request.context().status() == Errc::timed_out);
        (void)response.send({});
      },
      options);
  net::TcpStream stream = server.connect();
  CHECK(ask_once(stream, kGet).status == 200);
}

TEST_SUITE_END();

}  // namespace

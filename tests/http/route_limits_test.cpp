// Tests limits of single routes, which replace the server's.
#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <weft/error.hpp>
#include <weft/event.hpp>
#include <weft/http/error.hpp>
#include <weft/http/router.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/http_test.hpp"
#include "tests/support/sim_test.hpp"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

void tell_size(http::Request& request, http::Response& response) {
  const auto [body, error] = request.read_all();
  if (!error) (void)response.send(std::to_string(body.size()));
}

std::string post(std::string_view path, std::size_t size) {
  return "POST " + std::string(path) +
         " HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n" +
         std::string(size, 'x');
}

std::string post_chunk(std::string_view path) {
  return "POST " + std::string(path) +
         " HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + "14\r\n" +
         std::string(20, 'x') + "\r\n0\r\n\r\n";
}

TEST_SUITE_BEGIN("http/route_limits");

FIBER_TEST_CASE("a route's body limit applies to that route only, within the server's limit") {
  bool was_called = false;
  http::Router router;
  router.use([](http::Request& request, http::Response& response, const http::Handler& next) {
    request.set_limits({.body_bytes = 50});
    next(request, response);
  });
  router.post("/plain", tell_size);
  router.post("/small", http::limited({.body_bytes = 10},
                                      [&](http::Request& request, http::Response& response) {
                                        was_called = true;
                                        tell_size(request, response);
                                      }));
  router.post("/large", http::limited({.body_bytes = 1'000'000}, tell_size));
  const HttpServer server(router, {.limits = {.body_bytes = 100}});
  CHECK(ask(server, post("/plain", 50) + post("/plain", 1)).at(1).body == "1");
  CHECK(ask(server, post("/plain", 51)).at(0).status == 413);
  CHECK(ask(server, post_chunk("/plain")).at(0).body == "20");
  CHECK(ask(server, post("/small", 10)).at(0).body == "10");
  was_called = false;
  CHECK(ask(server, post("/small", 11)).at(0).status == 413);
  CHECK_FALSE(was_called);
  CHECK(ask(server, post_chunk("/small")).at(0).status == 413);
  CHECK(was_called);
  CHECK(ask(server, post("/large", 100)).at(0).body == "100");
  CHECK(ask(server, post("/large", 101)).at(0).status == 413);
  // The next request of a connection has the server's limits again.
  CHECK(ask(server, post("/small", 10) + post("/plain", 50)).at(1).body == "50");
}

SIM_TEST_CASE("the time limits of a route apply to that route only") {
  http::Router router;
  const auto wait = [](http::Request& request, http::Response& response) {
    (void)response.send(wait_for_end(request.context()) == weft::Errc::timed_out ? "late" : "gone");
  };
  router.get("/brief", http::limited({.request = 2s}, wait));
  router.get("/long", wait);
  router.post("/upload", http::limited({.body = 3s}, tell_size));
  std::error_code unsent;
  router.get("/stuck", http::limited({.write = 4s}, [&](http::Request&, http::Response& response) {
               const std::string part(1 << 20, 'x');
               while (!unsent) unsent = response.write(part);
             }));
  const HttpServer server(router, {.limits = {.body = 1h, .write = 1h, .request = 1min}});
  const auto seconds_of = [&](std::string_view request, std::string_view answer) {
    const auto began = world.now();
    net::TcpStream stream = server.connect();
    CHECK(ask_once(stream, request).body == answer);
    return (world.now() - began) / 1s;
  };
  const std::string rest = " HTTP/1.1\r\nHost: a\r\n";
  CHECK(seconds_of("GET /brief" + rest + "\r\n", "late") == 2);
  CHECK(seconds_of("GET /long" + rest + "\r\n", "late") == 60);
  CHECK(seconds_of("POST /upload" + rest + "Content-Length: 9\r\n\r\nabc", "Request Timeout\n") ==
        3);
  net::TcpStream stuck = server.connect();
  const auto began = world.now();
  send_text(stuck, "GET /stuck" + rest + "\r\n");
  while (!unsent) this_fiber::sleep_for(1s);
  CHECK(unsent == weft::Errc::timed_out);
  CHECK(world.now() - began < 10s);
}

SIM_TEST_CASE("a route's time limit applies even if middleware has already used the context") {
  static const ContextKey<int> key;
  http::Router router;
  const Context* outer = nullptr;
  router.use([&](http::Request& request, http::Response& response, const http::Handler& next) {
    outer = &request.context();
    request.context().set(key, 7);
    next(request, response);
    CHECK(outer->status());  // The route's limit does not bind the middleware.
  });
  const auto wait = [&](http::Request& request, http::Response& response) {
    CHECK(request.context().is_within(*outer));
    CHECK(*request.context().get(key) == 7);
    // The limit also applies to calls that the handler makes.
    CHECK_FALSE(this_fiber::sleep_for(1h, Until::ambient()));
    (void)response.send(request.context().status() == weft::Errc::timed_out ? "late" : "gone");
  };
  router.get("/", http::limited({.request = 1min}, http::limited({.request = 2s}, wait)));
  const HttpServer server(router);
  net::TcpStream stream = server.connect();
  const auto began = world.now();
  CHECK(ask_once(stream, kGet).body == "late");
  CHECK((world.now() - began) / 1s == 2);
}

TEST_CASE("limited() refuses an empty handler and a time limit of zero") {
  CHECK_THROWS_AS((void)http::limited({}, {}), std::invalid_argument);
  CHECK_THROWS_AS((void)http::limited({.request = 0s}, tell_size), std::invalid_argument);
}

TEST_SUITE_END();

}  // namespace

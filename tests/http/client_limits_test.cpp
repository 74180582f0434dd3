// Tests deadlines and stop requests of a client's calls, and of the wait for a connection.
#include <array>
#include <stop_token>
#include <string>
#include <string_view>
#include <weft/blocking.hpp>
#include <weft/event.hpp>
#include <weft/http/client.hpp>

#include "tests/support/http_test.hpp"
#include "tests/support/parked.hpp"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

std::string url_of(const HttpServer& server, std::string_view path) {
  return "http://" + server.address().to_string() + std::string(path);
}

// "/part" sends only its first bytes, "/never" gets no answer, and other paths get a full answer.
void answer(http::Request& request, http::Response& response) {
  if (request.path() == "/") return void(response.send("x"));
  if (request.path() == "/part") (void)response.write("part");
  (void)wait_for_end(request.context());
}

TEST_SUITE_BEGIN("http/client_limits");

FIBER_TEST_CASE(
    "a stop request ends a wait for a free connection, and the next caller gets the connection") {
  const HttpServer server(answer);
  http::Client client({.max_per_host = 1});
  // No caller reads the body of this answer yet.
  http::Reply held = client.get(url_of(server, "/")).value;
  std::stop_source source;
  auto stopped = spawn([&] { return client.get(url_of(server, "/"), source.get_token()).error; });
  await_parked(runtime, "semaphore");
  auto next = spawn([&] { return client.get(url_of(server, "/")).value.read_all().value; });
  await_parked(runtime, "semaphore", 2);
  (void)source.request_stop();
  CHECK(stopped.join() == Errc::cancelled);
  CHECK(held.read_all().value == "x");
  CHECK(next.join() == "x");
  CHECK(client.stats().connections == 1);
}

FIBER_TEST_CASE(
    "a deadline or a stop request ends a plain thread's HTTP call, its wait for a connection, or "
    "its read of a body") {
  const HttpServer server(answer);
  http::Client client({.max_per_host = 1});
  std::stop_source source;
  auto stopper = spawn([&] { (void)source.request_stop(); });
  const std::stop_token token = source.get_token();
  blocking([&] {
    CHECK(client.get(url_of(server, "/never"), Deadline::after(5ms)).error == Errc::timed_out);
    CHECK(client.get(url_of(server, "/never"), token).error == Errc::cancelled);
    {
      auto [reply, error] = client.get(url_of(server, "/part"));
      CHECK_FALSE(error);
      std::array<std::byte, 8> buffer;
      for (std::size_t count = 0; count < 4;) count += reply.read_some(buffer).value;
      CHECK(reply.read_some(buffer, Deadline::after(1ms)).error == Errc::timed_out);
      CHECK(reply.read_some(buffer, token).error == Errc::cancelled);
      CHECK(reply.read_all(Deadline::after(1ms)).error == Errc::timed_out);
      CHECK(reply.read_all(token).error == Errc::cancelled);
      CHECK(client.get(url_of(server, "/"), Deadline::after(5ms)).error == Errc::timed_out);
      CHECK(client.get(url_of(server, "/"), token).error == Errc::cancelled);
    }
    CHECK(client.get(url_of(server, "/")).value.read_all().value == "x");
  });
  stopper.join();
}

TEST_SUITE_END();

}  // namespace

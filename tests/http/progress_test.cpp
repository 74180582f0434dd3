// Tests limits of progress: a server serves a slow but steady client, and drops a client below the
// minimum rate.
#include <weft/clock.hpp>
#include <weft/event.hpp>
#include <weft/http/server.hpp>
#include <weft/this_fiber.hpp>

#include "tests/http/plain_layer.hpp"
#include "tests/support/http_test.hpp"
#include "tests/support/sim_test.hpp"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

constexpr std::size_t kPart = 64 * 1024;

http::ServerOptions with_grace() {
  http::ServerOptions options;
  options.limits.body = options.limits.write = 1min;
  options.limits.least_rate = 1024;
  return options;
}

void answer_with_size(http::Request& request, http::Response& response) {
  const auto [body, error] = request.read_all();
  if (!error) (void)response.send(std::to_string(body.size()));
}

// Returns the server's answer to a client that sends `size` bytes, `part` bytes in each `pause`.
Answer upload(const HttpServer& server, std::size_t size, std::size_t part,
              std::chrono::nanoseconds pause) {
  net::TcpStream stream = server.connect();
  send_text(stream,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n");
  const std::string text(part, 'x');
  for (std::size_t sent = 0; sent < size; sent += part) {
    if (stream.wait_readable(Deadline::after(pause))) break;  // The server has refused it.
    send_text(stream, text);
  }
  return receive_answer(stream);
}

// Returns the number of bytes that a client gets if it reads `part` bytes in each `pause`.
std::size_t download(const HttpServer& server, std::size_t part, std::chrono::nanoseconds pause) {
  net::TcpStream stream = server.connect();
  send_text(stream, kGet);
  std::string room(part, ' ');
  std::size_t all = 0;
  for (;;) {
    const auto [count, error] = stream.read_exactly(std::as_writable_bytes(std::span(room)));
    all += count;
    if (error) return all;
    this_fiber::sleep_for(pause);
  }
}

TEST_SUITE_BEGIN("http/progress");

SIM_TEST_CASE(
    "a server accepts a steady upload that takes longer than the time limit for a request body") {
  const HttpServer server(answer_with_size, with_grace());
  const Answer answer = upload(server, 8 * kPart, kPart, 20s);
  CHECK(answer.status == 200);
  CHECK(answer.body == std::to_string(8 * kPart));
  CHECK(world.now() >= 160s);
}

SIM_TEST_CASE("a server answers with 408 when an upload arrives at one byte per second") {
  const HttpServer server(answer_with_size, with_grace());
  CHECK(upload(server, kPart, 1, 1s).status == 408);
  CHECK(world.now() >= 1min);
  CHECK(world.now() < 2min);
}

SIM_TEST_CASE(
    "a client that reads steadily for longer than the write time limit gets the whole response") {
  for (const bool has_layer : {false, true}) {
    http::ServerOptions options = with_grace();
    if (has_layer) options.secure = make_plain_layer;
    const std::string text(32 * kPart, 'x');
    const HttpServer server(
        [&](http::Request&, http::Response& response) {
          response.close_after();
          CHECK(response.send(text));
        },
        options);
    const auto began = Clock::now();
    CHECK(download(server, kPart, 10s) > text.size());
    CHECK(Clock::now() - began >= 3min);
  }
}

SIM_TEST_CASE("a server disconnects a client that reads one byte per second") {
  std::error_code error;
  Event ended;
  const HttpServer server(
      [&](http::Request&, http::Response& response) {
        const std::string text(32 * kPart, 'x');
        error = response.send(text);
        ended.set();
      },
      with_grace());
  const auto client = [&] {
    net::TcpStream stream = server.connect();
    send_text(stream, kGet);
    char byte = 0;
    while (!ended.wait_until(Deadline::after(1s))) {
      (void)stream.read_some(std::as_writable_bytes(std::span(&byte, 1)));
    }
  };
  client();
  CHECK(error == Errc::timed_out);
  CHECK(world.now() >= 1min);
}

TEST_SUITE_END();

}  // namespace

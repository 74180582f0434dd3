// Tests refused clients, and reports about refused requests and headers.
#include <chrono>
#include <cstddef>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/http/error.hpp>
#include <weft/http/server.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/this_fiber.hpp>

#include "tests/http/plain_layer.hpp"
#include "tests/support/descriptor_limit.hpp"
#include "tests/support/http_test.hpp"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

TEST_SUITE_BEGIN("http/refusals");

// `secure` is the server's layer, which must pass all bytes through unchanged.
void refuse_without_descriptors(const http::ServerLayer& secure) {
  constexpr std::size_t kClients = 40;
  auto listener = net::TcpListener::listen(net::Address::loopback_v4(0)).value;
  const net::Address address = listener.local_address().value;
  const auto connect = [&] {
    auto [stream, refused] = net::TcpStream::connect(address);
    CHECK_FALSE(refused);
    return std::move(stream);
  };
  // The clients connect before the server begins, so that they get descriptors.
  std::vector<net::TcpStream> clients;
  for (std::size_t i = 0; i < kClients; ++i) clients.push_back(connect());
  http::ServerOptions options;
  options.limits.idle = kNever;
  options.secure = secure;
  http::Server server(say_hello, options);
  JoinHandle<Result<void>> loop;
  {
    const DescriptorLimit limit(limit_that_leaves(16));
    loop = spawn([&] { return server.serve(listener); });
    while (server.stats().accepted + server.stats().turned_away < kClients) {
      this_fiber::sleep_for(1ms);
    }
    const std::size_t accepted = server.stats().accepted;
    CHECK(accepted > 0);
    CHECK(accepted < 16);
    CHECK(server.stats().accept_pauses >= 3);
    // The server accepts them in the order of their arrival.
    for (std::size_t i = 0; i < accepted; ++i) {
      CHECK(ask_once(clients[i], kGet).status == 200);
    }
    for (std::size_t i = accepted; i < kClients; ++i) {
      std::string text = receive_all(clients[i]);
      CHECK(text.empty() == static_cast<bool>(secure));  // A layer could not read a plain answer.
      if (secure) continue;
      const Answer answer = take_answer(text);
      CHECK(answer.status == 503);
      CHECK(answer.has("Retry-After: 1"));
    }
    clients.clear();
    while (server.stats().connections > 0) this_fiber::sleep_for(1ms);
  }
  net::TcpStream stream = connect();
  CHECK(ask_once(stream, kGet).status == 200);
  stream.close();
  CHECK(server.shutdown(Deadline::never()));
  CHECK(loop.join());
}

FIBER_TEST_CASE("a server without free descriptors refuses a new client and keeps running") {
  refuse_without_descriptors({});
  refuse_without_descriptors(make_plain_layer);
}

FIBER_TEST_CASE("the access log shows why a request was refused") {
  // The log is written after the answer, perhaps on another worker.
  Channel<std::error_code> told(1);
  std::vector<std::error_code> errors;
  http::ServerOptions options;
  options.limits.body_bytes = 10;
  options.on_access = [&](const http::Access& access) { (void)told.send(access.error); };
  {
    const HttpServer server(
        [](http::Request& request, http::Response& response) {
          if (!request.read_all().error) (void)response.send({});
        },
        options);
    for (const std::string_view request :
         {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: [\r\n\r\n",
          "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nA: b\n\r\n", "G\r\n\r\n",
          "GET a HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nA b: c\r\n\r\n",
          "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
          "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\n",
          "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc",
          "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x\r\n\r\n",
          "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx",
          "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nx\r\n\r\n",
          "GET / HTTP/1.1\r\nHo", "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n",
          "GET / HTTP/2.0\r\nHost: a\r\n\r\n"}) {
      CHECK(ask(server, request).size() == 1);
      errors.push_back(told.receive().value());
    }
  }
  using enum http::Errc;
  const std::vector<std::error_code> wanted = {{},
                                               malformed_host,
                                               malformed_host,
                                               malformed_line,
                                               malformed_start,
                                               malformed_target,
                                               malformed_header,
                                               malformed_length,
                                               body_too_large,
                                               unexpected_end,
                                               unsupported_coding,
                                               malformed_chunk,
                                               malformed_trailer,
                                               truncated_head,
                                               unsupported_method,
                                               unsupported_version};
  CHECK(errors == wanted);
}

FIBER_TEST_CASE("control characters from a client are replaced in error messages") {
  std::vector<std::string> messages;
  http::ServerOptions options;
  options.on_exception = [&](std::exception_ptr thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::invalid_argument& refused) {
      messages.emplace_back(refused.what());
    }
  };
  {
    const HttpServer server(
        [](http::Request& request, http::Response& response) {
          response.add_header(request.query_value("n").value(), request.query_value("v").value());
        },
        options);
    for (const std::string_view query : {"n=a%0d%0aX&v=b", "n=Content-Length&v=1%0a%1b[31m"}) {
      const std::string request = "GET /?" + std::string(query) + " HTTP/1.1\r\nHost: a\r\n\r\n";
      CHECK(ask(server, request).at(0).status == 500);
    }
  }
  CHECK(messages.size() == 2);
  CHECK(messages[0].find("'a??X'") != std::string::npos);
  for (const std::string& message : messages) {
    for (const char c : message) CHECK(static_cast<unsigned char>(c) >= 0x20);
  }
}

TEST_SUITE_END();

}  // namespace

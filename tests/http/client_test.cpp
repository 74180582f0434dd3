#include <weft/http/client.hpp>

#include <array>
#include <atomic>
#include <stop_token>
#include <string>
#include <vector>
#include <weft/blocking.hpp>
#include <weft/event.hpp>
#include <weft/http/error.hpp>
#include <weft/http/router.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/http_script.hpp"
#include "tests/support/http_test.hpp"
#include "tests/support/sim_test.hpp"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

std::string url_of(const HttpServer& server, std::string_view path) {
  return "http://" + server.address().to_string() + std::string(path);
}

TEST_SUITE_BEGIN("http/client");

FIBER_TEST_CASE("a client reuses its connection for the next request") {
  const HttpServer server([](http::Request& request, http::Response& response) {
    response.add_header("X-Path", request.path());
    (void)response.send(request.read_all().value);
  });
  http::Client client;
  for (int i = 0; i < 20; ++i) {
    const std::string path = std::string("/").append(std::to_string(i));
    http::Call call{.method = "POST", .url = url_of(server, path)};
    call.body = std::string(static_cast<std::size_t>(i * 1000), 'x');
    auto [reply, error] = client.send(call);
    CHECK_FALSE(error);
    CHECK(reply.status() == 200);
    CHECK(reply.header("x-path") == path);
    CHECK(reply.content_length() == call.body.size());
    CHECK(reply.read_all().value == call.body);
  }
  CHECK(client.stats().connections == 1);
  CHECK(client.stats().reused == 19);
}

FIBER_TEST_CASE("a client never opens more connections to a host than max_per_host") {
  std::atomic<int> running{0};
  HttpServer server([&](http::Request&, http::Response& response) {
    CHECK(++running <= 3);
    this_fiber::yield();
    --running;
    (void)response.send("x");
  });
  http::Client client({.max_per_host = 3});
  WaitGroup all;
  for (int i = 0; i < 30; ++i) {
    all.go([&] {
      auto [reply, error] = client.get(url_of(server, "/"));
      CHECK_FALSE(error);
      CHECK(reply.read_all().value == "x");
    });
  }
  all.wait();
  CHECK(client.stats().connections <= 3);
  CHECK(server.server().stats().accepted <= 3);
  // Unread bodies hold their slots.
  std::vector<http::Reply> held;
  for (int i = 0; i < 3; ++i) held.push_back(client.get(url_of(server, "/")).value);
  CHECK(client.get(url_of(server, "/"), Deadline::after(5ms)).error == Errc::timed_out);
  held.pop_back();
  CHECK_FALSE(client.get(url_of(server, "/")).error);
}

FIBER_TEST_CASE("client and server exchange chunked bodies with trailers") {
  const HttpServer server([](http::Request& request, http::Response& response) {
    CHECK_FALSE(request.content_length());
    std::array<std::byte, 100> part;
    for (;;) {
      const auto [count, error] = request.read_some(part);
      if (error) break;
      (void)response.write(std::span(part).first(count));
    }
  });
  http::Client client;
  int left = 50;
  http::Call call{.method = "PUT", .url = url_of(server, "/")};
  call.body_source = [&](std::span<std::byte> room) -> net::Result<std::size_t> {
    if (left == 0) return {.error = Errc::end_of_stream};
    const std::size_t size =
        std::min<std::size_t>(static_cast<std::size_t>(left--) * 7, room.size());
    std::fill_n(room.begin(), size, std::byte{'y'});
    return {.value = size};
  };
  auto [reply, error] = client.send(call);
  CHECK_FALSE(error);
  CHECK_FALSE(reply.content_length());
  CHECK(reply.read_all().value == std::string(7 * 50 * 51 / 2, 'y'));
  Script script(
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nA: b\r\n\r\n"});
  auto chunked = client.get(script.url()).value;
  CHECK(chunked.read_all().value == "abc");
  CHECK(chunked.trailers().size() == 1);
}

FIBER_TEST_CASE("a client follows permitted redirects, up to max_redirects") {
  http::Router router;
  const auto to = [](int status, std::string place) {
    return [status, place](http::Request&, http::Response& response) {
      response.set_status(status);
      response.add_header("Location", place);
      (void)response.send("elsewhere");
    };
  };
  const auto echo = [](http::Request& request, http::Response& response) {
    (void)response.send(std::string(request.method()) + " " + std::string(request.target()) + " " +
                        request.read_all().value +
                        std::string(request.header("authorization").value_or("-")));
  };
  router.post("/301", to(301, "end?x")).post("/303", to(303, "/end")).post("/307", to(307, "/end"));
  router.get("/loop", to(302, "/loop")).get("/end", echo).post("/end", echo);
  router.put("/301", to(301, "/end")).del("/302", to(302, "/end")).del("/303", to(303, "/end"));
  router.put("/end", echo).del("/end", echo);
  router.get("/odd", to(302, "mailto:a")).get("/300", to(300, "/end"));
  const HttpServer server(router);
  http::Router leaving;
  leaving.get("/away", to(302, url_of(server, "/end")));
  const HttpServer other(leaving);
  http::Client client({.max_per_host = 1});
  const auto ask = [&](std::string method, const std::string& url) {
    auto [reply, error] = client.send({.method = std::move(method),
                                       .url = url,
                                       .headers = {{"Authorization", "secret"}},
                                       .body = "body "});
    return error ? error.message() : reply.read_all().value;
  };
  CHECK(ask("POST", url_of(server, "/301")) == "GET /end?x secret");
  CHECK(ask("POST", url_of(server, "/303")) == "GET /end secret");
  CHECK(ask("POST", url_of(server, "/307")) == "POST /end body secret");
  CHECK(ask("PUT", url_of(server, "/301")) == "PUT /end body secret");
  CHECK(ask("DELETE", url_of(server, "/302")) == "DELETE /end body secret");
  CHECK(ask("DELETE", url_of(server, "/303")) == "GET /end secret");
  CHECK(ask("GET", url_of(server, "/300")) == "elsewhere");
  CHECK(client.get(url_of(other, "/away")).value.url().to_string() == url_of(server, "/end"));
  CHECK(ask("GET", url_of(other, "/away")) == "GET /end -");
  CHECK(client.get(url_of(server, "/loop")).error == http::Errc::too_many_redirects);
  CHECK(client.get(url_of(server, "/odd")).value.read_all().value == "elsewhere");
  http::Client stays({.max_redirects = 0});
  CHECK(stays.get(url_of(server, "/loop")).value.status() == 302);
}

FIBER_TEST_CASE("a client replaces a closed idle connection if the request may be repeated") {
  Script script({kGood + "|", kGood + "|", kGood});
  http::Client client;
  CHECK(client.get(script.url()).value.read_all().value == "ok");
  // The server reads this request, and closes without an answer.
  CHECK(client.get(script.url()).value.read_all().value == "ok");
  CHECK(client.stats().retried == 1);
  CHECK(client.send({.method = "POST", .url = script.url()}).error == http::Errc::unexpected_end);
  CHECK(client.get(script.url()).value.read_all().value == "ok");
  script.join();
}

FIBER_TEST_CASE("a client returns an error for an ambiguous response") {
  using enum http::Errc;
  const std::vector<std::pair<std::string, http::Errc>> answers = {
      {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok", malformed_length},
      {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       malformed_length},
      {"HTTP/1.1 200 OK\nContent-Length: 2\r\n\r\nok", malformed_line},
      {"HTTP/1.1 200 OK\r\n A: b\r\n\r\n", malformed_line},
      {"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok", malformed_length},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, x\r\n\r\n", malformed_coding},
      {"HTTP/1.1 200 OK\r\nA b: c\r\n\r\n", malformed_header},
      {"HTTP/1.1 99 OK\r\n\r\n", malformed_start},
      {"ICY 200 OK\r\n\r\n", malformed_start},
      {"<html>\r\n\r\n", malformed_start},
      {"HTTP/1.1 200 OK\r\nContent-Le", truncated_head},
      {"HTTP/2.0 200 OK\r\n\r\n", unsupported_version},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", unsupported_coding},
  };
  std::vector<std::string> texts;
  for (const auto& [text, wanted] : answers) texts.push_back(text);
  Script script(texts);
  http::Client client;
  for (const auto& [text, wanted] : answers) {
    const std::error_code error = client.get(script.url()).error;
    CHECK(std::pair(text, error) == std::pair(text, http::make_error_code(wanted)));
    CHECK((error == http::ErrorKind::malformed) == (wanted <= truncated_head));
  }
  script.join();
  Script bodies({"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
                 "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
                 "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcX",
                 "HTTP/1.1 200 OK\r\n\r\nup to the end",
                 "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n01234567890"});
  http::Client strict({.body_bytes = 10});
  CHECK(client.get(bodies.url()).value.read_all().error == http::Errc::unexpected_end);
  CHECK(client.get(bodies.url()).value.read_all().error == http::Errc::unexpected_end);
  CHECK(client.get(bodies.url()).value.read_all().error == http::Errc::malformed_chunk);
  CHECK(client.get(bodies.url()).value.read_all().value == "up to the end");
  CHECK(strict.get(bodies.url()).value.read_all().error == http::Errc::body_too_large);
}

FIBER_TEST_CASE("a client handles interim responses (1xx) and responses without a body") {
  Script script(
      {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" + kGood,
       "HTTP/1.1 204 No Content\r\n\r\n|HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n"
       "\r\n|HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n|" +
           kGood});
  http::Client client;
  CHECK(client.get(script.url()).value.read_all().value == "ok");
  CHECK(client.get(script.url()).value.status() == 204);
  CHECK(client.get(script.url()).value.read_all().value.empty());
  auto head = client.send({.method = "HEAD", .url = script.url()}).value;
  CHECK(head.content_length() == 9);
  CHECK(head.read_all().value.empty());
  CHECK(client.get(script.url()).value.read_all().value == "ok");
  CHECK(client.stats().connections == 2);
}

FIBER_TEST_CASE(
    "a client reports the body length for a HEAD request only if the server sends the length") {
  const std::string answers[] = {
      "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "HTTP/1.1 304 Not Modified\r\n\r\n",
      "HTTP/1.1 204 No Content\r\n\r\n"};
  const std::optional<std::uint64_t> lengths[] = {std::nullopt, std::nullopt, 9, std::nullopt, 0};
  Script script({std::begin(answers), std::end(answers)});
  for (const auto& length : lengths) {
    http::Client client;
    auto reply = client.send({.method = "HEAD", .url = script.url()}).value;
    CHECK(reply.content_length() == length);
    CHECK(reply.read_all().value.empty());
  }
  script.join();
}

FIBER_TEST_CASE(
    "a client gives up on a call when the server sends endless interim responses or tiny chunks") {
  std::string informs;
  for (int i = 0; i < 20; ++i) informs += "HTTP/1.1 103 Early Hints\r\n\r\n";
  std::string wraps = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 100; ++i) wraps += "1;" + std::string(200, 'x') + "\r\na\r\n";
  Script script({informs + kGood, wraps + "0\r\n\r\n"});
  http::Client client({.head_bytes = 256});
  CHECK(client.get(script.url()).error == http::Errc::head_too_large);
  CHECK(client.get(script.url()).value.read_all().error == http::Errc::malformed_chunk);
}

FIBER_TEST_CASE("a stop request ends a call to a server that sends data forever") {
  const std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  Script script({chunked + "1\r\na\r\n1\r\nb\r\n0\r\n\r\n"});
  http::Client client;
  std::stop_source source;
  auto reply = client.get(script.url()).value;
  (void)source.request_stop();
  CHECK(reply.read_all(source.get_token()).error == Errc::cancelled);
  // The caller can still read the rest.
  CHECK(reply.read_all().value.ends_with('b'));
}

SIM_TEST_CASE("a client closes an unused connection automatically") {
  Script script({kGood + "|"});
  http::Client client({.idle = 24h});
  CHECK(client.get(script.url()).value.read_all().value == "ok");
  script.join();  // The server has read the end.
  CHECK(world.now() >= 24h);
  CHECK(world.now() < 49h);
}

SIM_TEST_CASE(
    "a client reuses an idle connection only until the client's idle time of one hour has passed") {
  HttpServer server([](http::Request&, http::Response& response) { (void)response.send("x"); },
                    {.limits = {.idle = 48h}});
  http::Client client({.idle = 1h});
  for (int i = 0; i < 10; ++i) {
    CHECK(client.get(url_of(server, "/")).value.read_all().value == "x");
    world.run_for(59min);
  }
  CHECK(server.server().stats().accepted == 1);
  world.run_for(3h);
  CHECK(client.get(url_of(server, "/")).value.read_all().value == "x");
  CHECK(server.server().stats().accepted == 2);
}

FIBER_TEST_CASE(
    "a client whose request body is refused returns the response without sending the rest of the "
    "body") {
  auto listener = net::TcpListener::listen(net::Address::loopback_v4(0)).value;
  const std::string url = "http://" + listener.local_address().value.to_string() + "/";
  Event over;
  auto server = spawn([&] {
    for (int i = 0; i < 2; ++i) {
      auto stream = listener.accept().value;
      (void)receive_until(stream, "\r\n\r\n");
      send_text(stream, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno");
      over.wait();
      over.reset();
    }
  });
  http::Client client;
  http::Call call{.method = "POST", .url = url};
  call.body_source = [](std::span<std::byte> room) -> net::Result<std::size_t> {
    return {.value = room.size()};  // The body never ends.
  };
  const auto refused = [&] {
    auto [reply, error] = client.send(call);
    CHECK_FALSE(error);
    CHECK(reply.status() == 401);
    CHECK(reply.read_all().value == "no");
    over.set();
  };
  refused();
  call.body_source = nullptr;
  call.body = std::string(32 << 20, 'x');  // The kernel cannot buffer that much.
  refused();
  CHECK(client.stats().connections == 2);
  server.join();
}

FIBER_TEST_CASE("a client's call ends with an error when the source of the request body fails") {
  auto listener = net::TcpListener::listen(net::Address::loopback_v4(0)).value;
  const std::string url = "http://" + listener.local_address().value.to_string() + "/";
  http::Client client;
  http::Call call{.method = "POST", .url = url};
  call.body_source = [](std::span<std::byte>) -> net::Result<std::size_t> {
    return {.error = std::make_error_code(std::errc::io_error)};
  };
  CHECK(client.send(call).error == std::errc::io_error);
  call.body_source = [](std::span<std::byte>) -> net::Result<std::size_t> { throw 1; };
  CHECK_THROWS_AS((void)client.send(call), int);
}

FIBER_TEST_CASE("a client refuses a URL, method or header that would allow request splitting") {
  http::Client client;
  const std::string url = "http://127.0.0.1:9/";
  CHECK(client.send({.method = "GET / HTTP/1.1\r\nA:", .url = url}).error ==
        http::Errc::malformed_call);
  CHECK(client.get(url + " HTTP/1.1\r\nA: b").error == http::Errc::malformed_url);
  CHECK(client.get("https://127.0.0.1:9/").error == http::Errc::unsupported);
  const HttpServer server(
      [](http::Request&, http::Response& response) { (void)response.send({}); });
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"A", "b\r\nC: d"}, {"A b", "c"}, {"Host", "b c"}, {"Transfer-Encoding", "chunked"}}) {
    CHECK(client.send({.url = url_of(server, "/"), .headers = {{name, value}}}).error ==
          http::Errc::malformed_call);
  }
}

SIM_TEST_CASE("a deadline or a stop request ends a call and the reads of a response's body") {
  Event never;
  const HttpServer server([&](http::Request& request, http::Response& response) {
    if (request.path() == "/body") (void)response.write("part");
    (void)never.wait_until(request.context());
  });
  http::Client client;
  CHECK(client.get(url_of(server, "/"), Deadline::after(1min)).error == Errc::timed_out);
  std::stop_source source;
  const std::stop_token token = source.get_token();
  auto stopper = spawn([&] { source.request_stop(); });
  CHECK(client.get(url_of(server, "/"), token).error == Errc::cancelled);
  auto [reply, error] = client.get(url_of(server, "/body"));
  CHECK_FALSE(error);
  const auto [body, over] = reply.read_all(Deadline::after(1min));
  CHECK(over == Errc::timed_out);
  CHECK(body == "part");
}

FIBER_TEST_CASE("plain threads can send HTTP requests and read the responses") {
  const HttpServer server(
      [](http::Request&, http::Response& response) { (void)response.send("x"); });
  http::Client client;
  blocking([&] { CHECK(client.get(url_of(server, "/")).value.read_all().value == "x"); });
}

TEST_SUITE_END();

}  // namespace

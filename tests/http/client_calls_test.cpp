// Tests what a client sends, and when.
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>
#include <weft/http/client.hpp>
#include <weft/http/cookie_jar.hpp>
#include <weft/http/error.hpp>
#include <weft/http/forward.hpp>

#include "tests/support/http_script.hpp"
#include "tests/support/http_test.hpp"

namespace {

using namespace weft;
using namespace weft::test;

TEST_SUITE_BEGIN("http/client_calls");

FIBER_TEST_CASE("a client sends the caller's Host header once, instead of the URL's host") {
  Script script({kGood + "|" + kGood});
  http::Client client;
  for (const char* host : {"weft.example", "[::1]:81"}) {
    http::Call call{.url = script.url(), .headers = {{"A", "b"}, {"HOST", host}}};
    CHECK(client.send(call).value.read_all().value == "ok");
  }
  CHECK(script.requests() ==
        std::vector<std::string>{"GET / HTTP/1.1\r\nHost: weft.example\r\nA: b\r\n\r\n",
                                 "GET / HTTP/1.1\r\nHost: [::1]:81\r\nA: b\r\n\r\n"});
}

FIBER_TEST_CASE("a client refuses to send an invalid Host header or several Host headers") {
  http::Client client;
  http::Call call{.url = "http://127.0.0.1:9/"};
  for (const char* host : {"a b", "a, b", "a:b", "u@a", "[::1", "[fe80::1%25lo]", "a/"}) {
    call.headers = {{"Host", host}};
    CHECK(std::pair(host, client.send(call).error) ==
          std::pair(host, http::make_error_code(http::Errc::malformed_call)));
  }
  call.headers = {{"Host", "a"}, {"Host", "a"}};
  CHECK(client.send(call).error == http::Errc::malformed_call);
}

FIBER_TEST_CASE("a CONNECT request has a host and a port, and its response has no body") {
  // The client ignores the length, because the bytes after the head belong to the tunnel.
  Script script({"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n",
                 "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 2\r\n\r\nno"});
  const std::string host = http::Url::parse(script.url()).value.authority();
  http::Client client;
  http::Call call{.method = "CONNECT", .url = script.url()};
  auto [reply, error] = client.send(call);
  CHECK_FALSE(error);
  CHECK_FALSE(reply.content_length());
  CHECK(reply.read_all().value.empty());
  call.headers = {{"Host", "weft.example:443"}};
  auto refused = client.send(call);
  CHECK(refused.value.status() == 407);
  CHECK(refused.value.read_all().value == "no");
  CHECK(client.stats().connections == 2);
  CHECK(script.requests() ==
        std::vector<std::string>{
            "CONNECT " + host + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n",
            "CONNECT weft.example:443 HTTP/1.1\r\nHost: weft.example:443\r\n\r\n"});
  call.headers = {{"Host", "weft.example"}};
  CHECK(client.send(call).error == http::Errc::malformed_call);
  call.headers = {};
  call.body = "x";
  CHECK(client.send(call).error == http::Errc::malformed_call);
}

// Runs a server for one request; `talk` reads the request and writes the answer.
class Once {
 public:
  explicit Once(std::function<void(net::TcpStream&)> talk)
      : listener_(net::TcpListener::listen(net::Address::loopback_v4(0)).value),
        fiber_(spawn([this, talk = std::move(talk)] {
          net::TcpStream stream = listener_.accept().value;
          talk(stream);
        })) {}
  [[nodiscard]] http::Call call() const {
    return {.method = "PUT",
            .url = "http://" + listener_.local_address().value.to_string() + "/",
            .headers = {{"expect", "100-Continue"}}};
  }
  void join() { fiber_.join(); }

 private:
  net::TcpListener listener_;
  JoinHandle<void> fiber_;
};

bool has_nothing(net::TcpStream& stream) {
  return stream.wait_readable(Deadline::past()) == Errc::timed_out;
}

FIBER_TEST_CASE(
    "a client does not repeat a request when the connection is reset after the response began") {
  auto listener = net::TcpListener::listen(net::Address::loopback_v4(0)).value;
  const std::string url = "http://" + listener.local_address().value.to_string() + "/";
  auto server = spawn([&] {
    net::TcpStream stream = listener.accept().value;
    (void)receive_until(stream, "\r\n\r\n");
    send_text(stream, kGood);
    (void)receive_until(stream, "\r\n\r\n");
    listener.close();  // The server would refuse a repeated request.
    send_text(stream, "HTTP/1.1 200 OK\r\nX: del");
    CHECK(stream.set_reset_on_close(true));
  });
  http::Client client;
  CHECK(client.get(url).value.read_all().value == "ok");
  CHECK(client.send({.method = "DELETE", .url = url}).error == http::Errc::truncated_head);
  CHECK(client.stats().retried == 0);
  server.join();
}

FIBER_TEST_CASE(
    "a client with Expect: 100-continue sends the body after the server's 100 Continue") {
  const std::string large(1 << 20, 'x');
  for (const std::string& body : {std::string("body"), large}) {
    Once server([&](net::TcpStream& stream) {
      const std::string head = receive_until(stream, "\r\n\r\n");
      CHECK(head.find("\r\nexpect: 100-Continue\r\n") != std::string::npos);
      CHECK(has_nothing(stream));
      send_text(stream, "HTTP/1.1 103 Early Hints\r\n\r\n");
      CHECK(has_nothing(stream));
      send_text(stream, "HTTP/1.1 100 Continue\r\n\r\n");
      std::string came(body.size(), '-');
      CHECK_FALSE(stream.read_exactly(std::as_writable_bytes(std::span(came))).error);
      CHECK(came == body);
      send_text(stream, kGood);
    });
    http::Client client({.continue_wait = kNever});
    http::Call call = server.call();
    call.body = body;
    CHECK(client.send(call).value.read_all().value == "ok");
    server.join();
  }
}

FIBER_TEST_CASE(
    "a client with Expect: 100-continue sends no body if the final response comes first") {
  Once server([](net::TcpStream& stream) {
    (void)receive_until(stream, "\r\n\r\n");
    send_text(stream, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno");
    CHECK(receive_all(stream).empty());
  });
  http::Client client({.continue_wait = kNever});
  http::Call call = server.call();
  call.body_source = [](std::span<std::byte>) -> net::Result<std::size_t> {
    CHECK_FALSE("the body is asked for");
    return {.error = Errc::end_of_stream};
  };
  auto [reply, error] = client.send(call);
  CHECK_FALSE(error);
  CHECK(reply.status() == 413);
  CHECK(reply.read_all().value == "no");
  server.join();
}

FIBER_TEST_CASE(
    "a client with Expect: 100-continue sends the body to a silent server after continue_wait") {
  Once server([](net::TcpStream& stream) {
    (void)receive_until(stream, "\r\n\r\nbody");
    send_text(stream, "HTTP/1.1 100 Continue\r\n\r\n" + kGood);  // Imitates a late "continue".
  });
  http::Client client({.continue_wait = std::chrono::milliseconds(1)});
  http::Call call = server.call();
  call.body = "body";
  CHECK(client.send(call).value.read_all().value == "ok");
  server.join();
}

FIBER_TEST_CASE("a deadline or a stop request ends a call that waits for 100 Continue") {
  std::stop_source source;
  Once server([&](net::TcpStream& stream) {
    (void)receive_until(stream, "\r\n\r\n");
    (void)source.request_stop();
    CHECK(receive_all(stream).empty());
  });
  http::Client client({.continue_wait = kNever});
  http::Call call = server.call();
  call.body = "body";
  CHECK(client.send(call, source.get_token()).error == Errc::cancelled);
  server.join();
}

FIBER_TEST_CASE("a client sends no Expect header for a call without a body") {
  Script script({kGood});
  http::Client client({.continue_wait = kNever});
  http::Call call{.method = "PUT", .url = script.url(), .headers = {{"Expect", "100-continue"}}};
  CHECK(client.send(call).value.read_all().value == "ok");
  CHECK(script.requests().back() ==
        "PUT / HTTP/1.1\r\nHost: " + http::Url::parse(script.url()).value.authority() +
            "\r\nContent-Length: 0\r\n\r\n");
}

FIBER_TEST_CASE(
    "a client repeats a call once, without the Expect header, when the server answers with 417") {
  const std::string refused =
      "HTTP/1.1 417 Expectation Failed\r\nSet-Cookie: a=1\r\nContent-Length: 0\r\n\r\n";
  Script script({refused, kGood, refused, refused});
  // The client may have only one connection, so the refused call must not keep it.
  http::CookieJar cookies;
  http::Client client({.max_per_host = 1, .continue_wait = kNever, .cookies = &cookies});
  http::Call call{.method = "PUT",
                  .url = script.url(),
                  .headers = {{"Expect", "100-continue"}, {"A", "b"}},
                  .body = "body"};
  CHECK(client.send(call).value.read_all().value == "ok");
  CHECK(cookies.size() == 1);
  CHECK(client.send(call).value.status() == 417);
  const auto requests = script.requests();
  CHECK(requests[0].find("Expect") != std::string::npos);
  CHECK(requests[1].find("Expect") == std::string::npos);
  CHECK(requests[1].find("A: b\r\n") != std::string::npos);
}

FIBER_TEST_CASE(
    "forward_call() copies the end-to-end headers of a request and adds the client's address") {
  Script script({kGood, kGood});
  const std::string origin = script.url().substr(0, script.url().size() - 1);
  http::Client client;
  for (const bool trusts : {false, true}) {
    const HttpServer server([&](http::Request& request, http::Response& response) {
      const auto call =
          http::forward_call(request, origin, {.scheme = "https", .trusts_client = trusts});
      auto reply = client.send(call);
      CHECK(http::forward_reply(reply.value, response));
    });
    net::TcpStream stream = server.connect();
    const Answer answer =
        ask_once(stream,
                 "DELETE http://weft.example/a?b HTTP/1.1\r\nHost: weft.example\r\n"
                 "Connection: x-hop,TE\r\nTE: trailers\r\nX-Hop: 1\r\nX-End: 2\r\n"
                 "Via: 1.0 a\r\nX-Forwarded-For: 192.0.2.1\r\nKeep-Alive: 1\r\n"
                 "Forwarded: for=b\r\nX-Forwarded-Host: c\r\n\r\n");
    CHECK(answer.body == "ok");
  }
  const std::string start =
      "DELETE /a?b HTTP/1.1\r\nHost: weft.example\r\nX-End: 2\r\nVia: 1.0 a, 1.1 weft\r\n";
  const std::string by = "for=127.0.0.1;host=\"weft.example\";proto=https\r\n";
  CHECK(script.requests() ==
        std::vector<std::string>{
            start + "Forwarded: " + by +
                "X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Host: weft.example\r\n"
                "X-Forwarded-Proto: https\r\n\r\n",
            start + "Forwarded: for=b, " + by +
                "X-Forwarded-For: 192.0.2.1, 127.0.0.1\r\nX-Forwarded-Host: c\r\n"
                "X-Forwarded-Proto: https\r\n\r\n"});
}

FIBER_TEST_CASE(
    "forward_reply() forwards a response completely, or aborts it so that the client notices") {
  const std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  Script script(
      {"HTTP/1.1 201 Created\r\nConnection: X-A\r\nX-A: 1\r\nX-B: 2\r\nDate: never\r\n"
       "Content-Length: 2\r\n\r\nok",
       "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", chunked + "2\r\nab\r\n0\r\n\r\n",
       chunked + "2\r\nab\r\n", "HTTP/1.1 200 OK\r\nX-C: 1\r\nContent-Length: 7\r\n\r\nab"});
  const std::string origin = script.url().substr(0, script.url().size() - 1);
  http::Client client;
  const HttpServer server([&](http::Request& request, http::Response& response) {
    auto reply = client.send(http::forward_call(request, origin));
    const auto done = http::forward_reply(reply.value, response);
    if (!done && !response.started()) response.set_status(502);
  });
  net::TcpStream first = server.connect();
  const Answer plain = ask_once(first, kGet);
  CHECK(plain.status == 201);
  CHECK(plain.body == "ok");
  CHECK(plain.has("X-B: 2"));
  CHECK_FALSE(plain.has("X-A: 1"));
  CHECK_FALSE(plain.has("Date: never"));
  net::TcpStream stream = server.connect();
  send_text(stream, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
  const std::string head = receive_until(stream, "\r\n\r\n");
  CHECK(head.find("\r\nContent-Length: 7\r\n") != std::string::npos);
  const std::string get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  send_text(stream, get);
  CHECK(receive_until(stream, "0\r\n\r\n").ends_with("2\r\nab\r\n0\r\n\r\n"));
  send_text(stream, get);
  CHECK(receive_all(stream).ends_with("\r\n\r\n2\r\nab\r\n"));
  net::TcpStream last = server.connect();
  const Answer broken = ask_once(last, kGet);
  CHECK(broken.status == 502);
  CHECK_FALSE(broken.has("X-C: 1"));
}

TEST_SUITE_END();

}  // namespace

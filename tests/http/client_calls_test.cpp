// What a client sends, and when.
#include <string>
#include <utility>
#include <vector>
#include <weft/http/client.hpp>
#include <weft/http/error.hpp>

#include "tests/support/http_script.hpp"
#include "tests/support/http_test.hpp"

namespace weft::test {

TEST_SUITE_BEGIN("http/client_calls");

FIBER_TEST_CASE("a Host that the caller gives is sent instead of the URL's, once") {
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

FIBER_TEST_CASE("a Host that cannot be one, or several, are not sent") {
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

FIBER_TEST_CASE("CONNECT asks for a host and a port, and its answer has no body") {
  // The length is none: what follows would be the tunnel.
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

TEST_SUITE_END();

}  // namespace weft::test

// Tests where redirects lead a client, and which headers and bodies the client sends there.
#include <string>
#include <utility>
#include <vector>
#include <weft/http/client.hpp>
#include <weft/http/error.hpp>

#include "tests/support/http_script.hpp"
#include "tests/support/http_test.hpp"

namespace {

using namespace weft;
using namespace weft::test;

std::string redirect(int status, const std::string& place) {
  return "HTTP/1.1 " + std::to_string(status) + " Elsewhere\r\nLocation: " + place +
         "\r\nContent-Length: 4\r\n\r\nelse";
}

std::string first_line(const std::string& request) { return request.substr(0, request.find('\r')); }

TEST_SUITE_BEGIN("http/client_redirects");

FIBER_TEST_CASE("a client percent-encodes spaces and non-ASCII bytes in a redirect") {
  Script script({redirect(302, "/caf\xc3\xa9 1?\xe9#\xc3\xa9") + "|" + kGood});
  http::Client client;
  auto [reply, error] = client.get(script.url());
  CHECK_FALSE(error);
  CHECK(reply.read_all().value == "ok");
  CHECK(reply.url().target == "/caf%C3%A9%201?%E9");
  CHECK(first_line(script.requests().back()) == "GET /caf%C3%A9%201?%E9 HTTP/1.1");
}

FIBER_TEST_CASE(
    "a client returns a redirect that it cannot follow, including the redirect's body") {
  const std::vector<std::string> places = {"mailto:a",    "http://", "http://caf\xc3\xa9/",
                                           "http://a:0/", "/\ta",    "https://127.0.0.1:9/"};
  std::vector<std::string> answers;
  for (const std::string& place : places) answers.push_back(redirect(302, place));
  answers.push_back(redirect(307, "/"));
  Script script(answers);
  http::Client client;
  for (const std::string& place : places) {
    auto [reply, error] = client.get(script.url());
    CHECK_FALSE(error);
    CHECK(reply.status() == 302);
    CHECK(reply.header("location") == place);
    CHECK(reply.read_all().value == "else");
  }
  http::Call call{.method = "PUT", .url = script.url()};
  call.body_source = [](std::span<std::byte>) -> net::Result<std::size_t> {
    return {.error = Errc::end_of_stream};  // The body cannot be read again.
  };
  http::Client other;  // It has no connection that the server may have closed.
  auto [reply, error] = other.send(call);
  CHECK_FALSE(error);
  CHECK(reply.status() == 307);
  CHECK(reply.read_all().value == "else");
  script.join();
}

FIBER_TEST_CASE(
    "a redirect keeps credentials for the same origin, and drops them for any other origin") {
  Script away({kGood});
  Script script({redirect(302, "/here") + "|" + redirect(307, away.url())});
  http::Client client;
  http::Call call{.url = script.url()};
  const std::vector<std::string> names = {"Authorization",    "proxy-authorization",
                                          "Cookie",           "Cookie2",
                                          "WWW-Authenticate", "Proxy-Authenticate"};
  for (const std::string& name : names) call.headers.emplace_back(name, "secret");
  call.headers.emplace_back("X-Other", "open");
  CHECK(client.send(call).value.read_all().value == "ok");
  const auto asked = script.requests();
  CHECK(asked.size() == 2);
  for (const std::string& name : names) {
    CHECK(asked.back().find(name + ": secret\r\n") != std::string::npos);
  }
  const std::string elsewhere = away.requests().front();
  CHECK(elsewhere.find("secret") == std::string::npos);
  CHECK(elsewhere.find("X-Other: open\r\n") != std::string::npos);
}

FIBER_TEST_CASE("a redirect keeps the caller's Host header only for the same origin") {
  Script away({kGood});
  Script script({redirect(302, "/here") + "|" + redirect(302, away.url())});
  http::Client client;
  CHECK(client.send({.url = script.url(), .headers = {{"host", "weft.example:81"}}})
            .value.read_all()
            .value == "ok");
  for (const std::string& request : script.requests()) {
    CHECK(request.find("\r\nHost: weft.example:81\r\n") != std::string::npos);
  }
  const std::string host = http::Url::parse(away.url()).value.authority();
  CHECK(away.requests().front().find("\r\nHost: " + host + "\r\n") != std::string::npos);
}

TEST_SUITE_END();

}  // namespace

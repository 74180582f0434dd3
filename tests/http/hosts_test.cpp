#include <weft/http/hosts.hpp>

#include <stdexcept>
#include <string>
#include <string_view>
#include <weft/http/router.hpp>

#include "tests/support/http_test.hpp"

namespace {

using namespace weft;
using namespace weft::test;

http::Handler say_site(std::string site) {
  return [site = std::move(site)](http::Request&, http::Response& response) {
    (void)response.send(site);
  };
}

// Returns the text of the host's handler, or the status.
std::string site_of(const HttpServer& server, std::string_view host) {
  const Answer answer =
      ask(server, "GET / HTTP/1.1\r\nHost: " + std::string(host) + "\r\n\r\n").at(0);
  return answer.status == 200 ? answer.body : std::to_string(answer.status);
}

TEST_SUITE_BEGIN("http/hosts");

FIBER_TEST_CASE("http::Hosts selects the handler by the host, and a wildcard matches one label") {
  http::Router router;
  router.get("/", say_site("routed"));
  http::Hosts hosts;
  hosts.host("example.org", say_site("site"))
      .host("*.example.org", say_site("tenant"))
      .host("WWW.Example.org.", router)
      .host("192.0.2.1", say_site("v4"))
      .host("[2001:db8::1]", say_site("v6"));
  const HttpServer server(hosts);
  for (const std::string_view host :
       {"example.org", "EXAMPLE.org", "example.org:8080", "example.org.", "example.org.:80"}) {
    CHECK(site_of(server, host) == "site");
  }
  CHECK(site_of(server, "a.example.org") == "tenant");
  CHECK(site_of(server, "A.example.org:1") == "tenant");
  CHECK(site_of(server, "www.example.org") == "routed");
  CHECK(site_of(server, "192.0.2.1:80") == "v4");
  CHECK(site_of(server, "[2001:DB8::1]:80") == "v6");
  CHECK(site_of(server, "[2001:0db8:0:0::0.0.0.1]") == "v6");
  for (const std::string_view host :
       {"b.a.example.org", "*.b.example.org", "example.com", "xexample.org", "org",
        "a.example.org.evil", ".example.org", "192.0.2.2", "[2001:db8::2]"}) {
    CHECK(site_of(server, host) == "421");
  }
}

FIBER_TEST_CASE(
    "http::Hosts prefers the request target's host to the Host header, and calls the otherwise() "
    "handler for unknown hosts") {
  http::Hosts hosts;
  hosts.host("a", say_site("a")).host("b", say_site("b")).otherwise(say_site("other"));
  const HttpServer server(hosts);
  CHECK(ask(server, "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n").at(0).body == "b");
  CHECK(ask(server, "GET / HTTP/1.0\r\n\r\n").at(0).body == "other");
  CHECK(site_of(server, "c") == "other");
  CHECK(site_of(server, "") == "other");
}

TEST_CASE("http::Hosts refuses host names that no request can have") {
  http::Hosts hosts;
  for (const std::string_view name : {"", ".", "*", "*.", "*.*.org", "a.*.org", "*a.org", ".org",
                                      "a:80", "a:", "[::1]:80", "*.[::1]", "[::1%25eth0]", "a b"}) {
    CHECK_THROWS_AS(hosts.host(name, say_site("x")), std::invalid_argument);
  }
  hosts.host("a", say_site("x")).host("*.a", say_site("x")).otherwise(say_site("x"));
  CHECK_THROWS_AS(hosts.host("A.", say_site("y")), std::invalid_argument);
  hosts.host("[::1]", say_site("x"));
  CHECK_THROWS_AS(hosts.host("[0::01]", say_site("y")), std::invalid_argument);
  CHECK_THROWS_AS(hosts.host("b", nullptr), std::invalid_argument);
  CHECK_THROWS_AS(hosts.otherwise(say_site("y")), std::invalid_argument);
}

TEST_SUITE_END();

}  // namespace

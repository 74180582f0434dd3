#include <weft/http/cookie.hpp>
#include <weft/http/cookie_jar.hpp>

#include <stdexcept>
#include <weft/http/client.hpp>

#include "tests/support/http_test.hpp"
#include "tests/support/sim_test.hpp"

namespace {

using namespace weft;
using namespace weft::test;

using http::Cookie;

// Holds a jar, and shows which cookies it sends to one URL after headers from other URLs.
struct Jar {
  http::CookieJar jar;
  explicit Jar(http::CookieJarOptions options = {}) : jar(options) {}

  Jar& store(const std::string& url, const std::string& header) {
    jar.add(http::Url::parse(url).value, header);
    return *this;
  }
  std::string sends(const std::string& url) { return jar.header_for(http::Url::parse(url).value); }
};

TEST_SUITE_BEGIN("http/cookie");

TEST_CASE("a Set-Cookie line contains all attributes that are set") {
  CHECK(http::to_set_cookie({.name = "a", .value = "b"}) == "a=b");
  CHECK(http::to_set_cookie({.name = "__Host-id",
                             .value = "\"1\"",
                             .path = "/",
                             .max_age = std::chrono::seconds(0),
                             .secure = true,
                             .http_only = true,
                             .same_site = http::SameSite::none,
                             .partitioned = true}) ==
        "__Host-id=\"1\"; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=None; Partitioned");
  CHECK(http::to_set_cookie({.name = "a",
                             .value = "",
                             .path = "/x",
                             .domain = "weft.example",
                             .same_site = http::SameSite::lax}) ==
        "a=; Path=/x; Domain=weft.example; SameSite=Lax");
}

TEST_CASE("a cookie is refused if it would split the header line or if browsers would drop it") {
  const Cookie bad[] = {
      {.name = "", .value = "b"},
      {.name = "a b", .value = "b"},
      {.name = "a=", .value = "b"},
      {.name = "a", .value = "b;c"},
      {.name = "a", .value = "b\r\nSet-Cookie: c=d"},
      {.name = "a", .value = "\""},
      {.name = "a", .value = "\xc3\xa4"},
      {.name = "a", .value = std::string(4096, 'b')},
      {.name = "a", .value = "b", .path = "x"},
      {.name = "a", .value = "b", .path = "/;Secure"},
      {.name = "a", .value = "b", .domain = "a\nb"},
      {.name = "a", .value = "b", .same_site = http::SameSite::none},
      {.name = "a", .value = "b", .partitioned = true},
      {.name = "__Secure-a", .value = "b"},
      {.name = "__Host-a", .value = "b", .path = "/", .domain = "c", .secure = true},
  };
  for (const Cookie& each : bad) {
    CHECK_THROWS_AS((void)http::to_set_cookie(each), std::invalid_argument);
  }
}

FIBER_TEST_CASE("a handler reads the cookies of a request and sets several cookies") {
  const HttpServer server([](http::Request& request, http::Response& response) {
    std::string all;
    for (const auto& [name, value] : http::cookies(request)) {
      all.append(name).append("(").append(value).append(")");
    }
    http::add_cookie(response, {.name = "x", .value = "1"});
    http::add_cookie(response, {.name = "y", .value = "2"});
    all.append(http::cookie(request, "a").value_or("-"));
    (void)response.send(all.append(http::cookie(request, "A").value_or("-")));
  });
  const Answer answer = ask(server,
                            "GET / HTTP/1.1\r\nHost: a\r\nCookie: a=1;b = \"2\" ; none; =3; a=4\r\n"
                            "Cookie: c=d=e\r\n\r\n")
                            .at(0);
  CHECK(answer.body == "a(1)b(\"2\")(3)a(4)c(d=e)1-");
  CHECK(answer.has("Set-Cookie: x=1"));
  CHECK(answer.has("Set-Cookie: y=2"));
}

FIBER_TEST_CASE(
    "a cookie jar sends a cookie only for URLs that match the cookie's domain and path") {
  Jar jar;
  jar.store("http://a.weft.example/x/y", "host=1")
      .store("http://a.weft.example/x/y", "all=2; Domain=.WEFT.example; Path=/")
      .store("http://a.weft.example/", "deep=3; path=/x/y")
      .store("http://a.weft.example/", "other=4; Domain=b.weft.example")
      .store("http://a.weft.example/", "suffix=5; Domain=example")
      .store("http://a.weft.example/", "tail=6; Domain=eft.example");
  CHECK(jar.sends("http://a.weft.example/x/y/z?q") == "deep=3; host=1; all=2");
  CHECK(jar.sends("http://a.weft.example/x") == "host=1; all=2");
  CHECK(jar.sends("http://a.weft.example/xy") == "all=2");
  CHECK(jar.sends("http://c.b.weft.example/x") == "all=2");
  CHECK(jar.sends("http://notweft.example/") == "");
  jar.store("http://127.0.0.1/", "ip=1; Domain=127.0.0.1").store("http://localhost/", "l=1");
  CHECK(jar.sends("http://127.0.0.1/") == "ip=1");
  CHECK(jar.sends("http://0.0.1/") == "");
  CHECK(jar.sends("http://localhost/") == "l=1");
  CHECK(jar.sends("http://a.localhost/") == "");
}

FIBER_TEST_CASE("a cookie jar sends no secure cookie over a plain connection") {
  Jar jar;
  jar.store("https://weft.example/", "s=1; Secure; Path=/").store("http://weft.example/", "s=2");
  jar.store("http://weft.example/", "t=1; Secure");
  CHECK(jar.sends("http://weft.example/") == "");
  CHECK(jar.sends("https://weft.example/") == "s=1");
  jar.store("https://weft.example/", "__Host-a=1; Secure; Path=/; Domain=weft.example")
      .store("https://weft.example/", "__secure-b=1")
      .store("https://weft.example/", "=__Host-c=1")
      .store("https://weft.example/", "__Host-d=1; Secure; Path=/");
  CHECK(jar.sends("https://weft.example/") == "s=1; __Host-d=1");
}

FIBER_TEST_CASE(
    "a cookie jar replaces and deletes cookies, and ignores invalid Set-Cookie headers") {
  Jar jar;
  jar.store("http://a.example/", "a=1").store("http://a.example/", "b=1");
  jar.store("http://a.example/", "a=2; Max-Age=x");
  CHECK(jar.sends("http://a.example/") == "a=2; b=1");
  jar.store("http://a.example/", "a=3; Expires=Thu, 01-Jan-1970 00:00:10 GMT");
  jar.store("http://a.example/", "b=3; Max-Age=-1; Expires=Fri, 1 Jan 2500 0:00:00 GMT");
  CHECK(jar.jar.size() == 0);
  for (const std::string& bad :
       std::vector<std::string>{"", "=", "a=\001", "a=" + std::string(4096, 'b')}) {
    jar.store("http://a.example/", bad);
  }
  CHECK(jar.jar.size() == 0);
  jar.store("http://a.example/", "c=1; Expires=1 Foo 2500 00:00:00").jar.clear();
  CHECK(jar.sends("http://a.example/") == "");
  CHECK_THROWS_AS(http::CookieJar({.max_cookies = 0}), std::invalid_argument);
}

FIBER_TEST_CASE("a full cookie jar drops the least recently used cookie") {
  Jar jar({.max_cookies = 3, .max_per_domain = 2});
  jar.store("http://a.example/", "a=1").store("http://a.example/", "b=1; Path=/b");
  CHECK(jar.sends("http://a.example/") == "a=1");
  jar.store("http://a.example/", "c=1");
  CHECK(jar.sends("http://a.example/b") == "a=1; c=1");
  jar.store("http://b.example/", "d=1").store("http://c.example/", "e=1");
  CHECK(jar.jar.size() == 3);
  CHECK(jar.sends("http://c.example/") == "e=1");
}

SIM_TEST_CASE("a cookie in a cookie jar expires when its maximum age is reached") {
  Jar jar;
  jar.store("http://a.example/", "a=1; Max-Age=60").store("http://a.example/", "b=1");
  world.run_for(std::chrono::seconds(59));
  CHECK(jar.sends("http://a.example/") == "a=1; b=1");
  world.run_for(std::chrono::seconds(2));
  CHECK(jar.sends("http://a.example/") == "b=1");
}

SIM_TEST_CASE("a full cookie jar drops an expired cookie before a cookie that is still valid") {
  Jar jar({.max_cookies = 2});
  jar.store("http://a.example/", "a=1").store("http://b.example/", "b=1; Max-Age=60");
  world.run_for(std::chrono::seconds(61));
  jar.store("http://c.example/", "c=1");
  CHECK(jar.sends("http://a.example/") == "a=1");
  CHECK(jar.sends("http://c.example/") == "c=1");
}

FIBER_TEST_CASE("a client with a cookie jar sends a server's cookies back, even after a redirect") {
  const HttpServer server([](http::Request& request, http::Response& response) {
    if (request.path() == "/in") {
      http::add_cookie(response, {.name = "id", .value = "7", .path = "/"});
      response.add_header("Location", "/");
      response.set_status(303);
    } else {
      (void)response.send(request.header("cookie").value_or("none"));
    }
  });
  http::CookieJar jar;
  http::Client client({.cookies = &jar});
  const std::string base = "http://" + server.address().to_string();
  CHECK(client.get(base).value.read_all().value == "none");
  CHECK(client.get(base + "/in").value.read_all().value == "id=7");
  CHECK(client.get(base).value.read_all().value == "id=7");
  CHECK(client.send({.url = base, .headers = {{"Cookie", "a=b"}}}).value.read_all().value == "a=b");
}

TEST_SUITE_END();

}  // namespace

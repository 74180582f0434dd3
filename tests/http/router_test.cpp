#include <weft/http/router.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <weft/http/hosts.hpp>
#include <weft/semaphore.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/http_test.hpp"

namespace {

using namespace weft;
using namespace weft::test;

http::Handler say(std::string what) {
  return [what = std::move(what)](http::Request& request, http::Response& response) {
    std::string text = what;
    for (const std::string name : {"id", "post", "path"}) {
      const std::string value = request.parameter(name);
      if (!value.empty()) text += " " + name + "=" + value;
    }
    (void)response.send(text);
  };
}

std::string get(const HttpServer& server, std::string_view path, std::string_view method = "GET") {
  const Answer answer =
      ask(server, std::string(method) + " " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n")
          .at(0);
  return answer.status == 200 ? answer.body : std::to_string(answer.status);
}

TEST_SUITE_BEGIN("http/router");

FIBER_TEST_CASE("a router selects the handler for a path and passes the path's parameters") {
  http::Router router;
  router.get("/", say("root"))
      .get("/users", say("users"))
      .get("/users/{id}", say("user"))
      .get("/users/me", say("me"))
      .get("/users/{id}/posts/{post}", say("post"))
      .get("/users/me/posts", say("my posts"))
      .get("/files/{path...}", say("file"))
      .put("/users/{id}", say("put"))
      .route("QUERY", "/users", say("query"));
  const HttpServer server(router);
  CHECK(get(server, "/") == "root");
  CHECK(get(server, "/?a=b") == "root");
  CHECK(get(server, "/users") == "users");
  CHECK(get(server, "/users/7") == "user id=7");
  CHECK(get(server, "/users/a%20b+c") == "user id=a b+c");
  CHECK(get(server, "/users/me") == "me");
  CHECK(get(server, "/users/me/posts") == "my posts");
  CHECK(get(server, "/users/me/posts/9") == "post id=me post=9");
  CHECK(get(server, "/users/7/posts/9") == "post id=7 post=9");
  CHECK(get(server, "/files/a/b.c") == "file path=a/b.c");
  CHECK(get(server, "/files/") == "file");
  CHECK(get(server, "/users/7", "PUT") == "put id=7");
  CHECK(get(server, "/users", "QUERY") == "query");
  CHECK(get(server, "/users", "query") == "405");
  CHECK(get(server, "/users/") == "404");
  CHECK(get(server, "/files") == "404");
  CHECK(get(server, "/nothing") == "404");
  CHECK(get(server, "/users/7/posts") == "404");
}

FIBER_TEST_CASE(
    "a router's response to an unsupported method lists the methods that the path supports") {
  http::Router router;
  router.get("/a", say("a")).put("/a", say("b"));
  const HttpServer server(router);
  const Answer answer = ask(server, "DELETE /a HTTP/1.1\r\nHost: a\r\n\r\n").at(0);
  CHECK(answer.status == 405);
  CHECK(answer.has("Allow: GET, HEAD, PUT"));
  CHECK(answer.has("Content-Type: text/plain"));
  CHECK(ask(server, "GET /b HTTP/1.1\r\nHost: a\r\n\r\n").at(0).has("Content-Type: text/plain"));
  CHECK(ask(server, "HEAD /a HTTP/1.1\r\nHost: a\r\n\r\n").at(0).status == 200);
}

FIBER_TEST_CASE(
    "a router finds the route for a method even if more specific routes have other methods") {
  http::Router router;
  router.get("/users/me", say("me"))
      .post("/users/{id}", say("post"))
      .del("/users/{path...}", say("delete"))
      .get("/{path...}", say("all"));
  const HttpServer server(router);
  CHECK(get(server, "/users/me") == "me");
  CHECK(get(server, "/users/me", "HEAD") == "");
  CHECK(get(server, "/users/me", "POST") == "post id=me");
  CHECK(get(server, "/users/me", "DELETE") == "delete path=me");
  CHECK(get(server, "/users/7") == "all path=users/7");
  const Answer answer = ask(server, "PUT /users/me HTTP/1.1\r\nHost: a\r\n\r\n").at(0);
  CHECK(answer.status == 405);
  CHECK(answer.has("Allow: DELETE, GET, HEAD, POST"));
}

FIBER_TEST_CASE("a router compares decoded path segments, and OPTIONS * matches no path") {
  http::Router router;
  router.get("/a b", say("blank")).get("/c%20d", say("coded")).route("OPTIONS", "/", say("root"));
  const HttpServer server(router);
  CHECK(get(server, "/a%20b") == "blank");
  CHECK(get(server, "/%61%20b") == "blank");
  CHECK(get(server, "/c%20d") == "coded");
  CHECK(get(server, "/", "OPTIONS") == "root");
  const Answer all = ask(server, "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").at(0);
  CHECK(all.status == 204);
  CHECK(all.has("Allow: GET, HEAD, OPTIONS"));
}

FIBER_TEST_CASE("a route for any method handles requests whose method has no route of its own") {
  http::Router router;
  router.get("/a", say("get"))
      .any("/a", say("any"))
      .any("/b/{id}", say("any b"))
      .post("/c", say("c"));
  const HttpServer server(router);
  CHECK(get(server, "/a") == "get");
  CHECK(get(server, "/a", "POST") == "any");
  CHECK(get(server, "/a", "QUERY") == "any");
  CHECK(get(server, "/b/7", "DELETE") == "any b id=7");
  CHECK(get(server, "/c", "DELETE") == "405");
  CHECK_THROWS_AS(router.any("/a", say("x")), std::invalid_argument);
  CHECK_THROWS_AS(router.route("", "/d", say("x")), std::invalid_argument);
  CHECK_THROWS_AS(router.route("A B", "/d", say("x")), std::invalid_argument);
}

FIBER_TEST_CASE("middleware of a router runs in order and may answer without calling the handler") {
  http::Router router;
  std::string order;
  router
      .use([&](http::Request& request, http::Response& response, const http::Handler& next) {
        order += "(";
        next(request, response);
        order += ")";
      })
      .use([&](http::Request& request, http::Response& response, const http::Handler& next) {
        if (!request.header("Authorization")) {
          response.set_status(401);
          (void)response.send({});
          return;
        }
        order += "x";
        next(request, response);
      })
      .get("/", say("root"));
  {
    const HttpServer server(router);
    const auto answers = ask(server,
                             "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
                             "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: b\r\n\r\n");
    CHECK(answers.at(0).status == 401);
    CHECK(answers.at(1).status == 200);
  }
  // The server has ended, because a handler may continue after its answer has arrived.
  CHECK(order == "()(x)");
}

FIBER_TEST_CASE("a router refuses an invalid pattern") {
  for (const std::string_view pattern :
       {"", "a", "/{", "/a{b}", "/{}", "/{...}", "/{a...}/b", "/a}"}) {
    http::Router router;
    CHECK_THROWS_AS(router.get(pattern, say("x")), std::invalid_argument);
  }
  http::Router router;
  router.get("/{a}", say("x"));
  CHECK_THROWS_AS(router.get("/{b}", say("x")), std::invalid_argument);
  CHECK_THROWS_AS(router.get("/x", nullptr), std::invalid_argument);
}

FIBER_TEST_CASE("a handler's fiber has the route as its name while the handler runs") {
  const auto say_name = [](http::Request&, http::Response& response) {
    (void)response.send(this_fiber::name());
  };
  std::string before;
  std::string after;
  Semaphore over{0};
  http::Router router;
  router.get("/users/{id}", say_name)
      .any("/any/{rest...}", say_name)
      .get("/throws", [](http::Request&, http::Response&) { throw std::runtime_error("no"); })
      .use([&](http::Request& request, http::Response& response, const http::Handler& next) {
        before = this_fiber::name();
        try {
          next(request, response);
        } catch (const std::runtime_error&) {
          response.set_status(500);
        }
        after = this_fiber::name();
        over.release();
      });
  const HttpServer server(router, {.name = "site"});
  CHECK(get(server, "/users/7") == "GET /users/{id}");
  over.acquire();  // The client may have its answer before the handler has returned.
  CHECK(before == "site");
  CHECK(after == before);
  CHECK(get(server, "/any/thing", "PUT") == "/any/{rest...}");
  over.acquire();
  CHECK(get(server, "/throws") == "500");
  over.acquire();
  CHECK(after == before);
}

FIBER_TEST_CASE("handlers, middleware and upgrade callbacks may be move-only callables") {
  const auto owned = [](std::string text) {
    return std::make_unique<std::string>(std::move(text));
  };
  const auto say_owned = [&](std::string text) {
    return [text = owned(std::move(text))](http::Request&, http::Response& response) {
      (void)response.send(*text);
    };
  };
  http::Router router;
  router.get("/", say_owned("root"))
      .post("/", http::limited({.body_bytes = 9}, say_owned("post")))
      .put("/", say_owned("put"))
      .del("/", say_owned("del"))
      .any("/any", say_owned("any"))
      .route("QUERY", "/", say_owned("query"))
      .get("/talk",
           [&](http::Request&, http::Response& response) {
             CHECK(response.upgrade("x", [text = owned("talk")](http::Upgraded upgraded) {
               send_text(upgraded.stream, *text);
             }));
           })
      .use([text = owned("1")](http::Request& request, http::Response& response,
                               const http::Handler& next) {
        response.add_header("Layer", *text);
        next(request, response);
      });
  const http::Handler copy = router;  // Copies share move-only handlers.
  const HttpServer server(copy);
  for (const auto& [method, body] : {std::pair{"GET", "root"},
                                     {"POST", "post"},
                                     {"PUT", "put"},
                                     {"DELETE", "del"},
                                     {"QUERY", "query"}}) {
    CHECK(get(server, "/", method) == body);
  }
  CHECK(get(server, "/any", "PATCH") == "any");
  CHECK(ask(server, kGet).at(0).has("Layer: 1"));
  net::TcpStream stream = server.connect();
  send_text(stream, "GET /talk HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n");
  CHECK(receive_all(stream).ends_with("talk"));
  http::Hosts hosts;
  hosts.host("a", say_owned("site")).otherwise(say_owned("other"));
  const HttpServer sites(std::move(hosts));
  CHECK(get(sites, "/") == "site");
  const HttpServer alone(say_owned("alone"));
  CHECK(get(alone, "/") == "alone");
}

TEST_SUITE_END();

}  // namespace

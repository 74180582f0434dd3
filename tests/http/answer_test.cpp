// Tests answers that clients must not confuse with other answers.
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <weft/error.hpp>
#include <weft/event.hpp>
#include <weft/http/error.hpp>
#include <weft/http/event_stream.hpp>
#include <weft/http/server.hpp>

#include "tests/support/http_test.hpp"
#include "tests/support/sim_test.hpp"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

// Collects the lines of a log in `lines`, which the test reads after the server has ended.
http::ServerOptions options_with_log(std::vector<std::string>& lines) {
  http::ServerOptions options;
  options.on_access = [&lines](const http::Access& access) {
    lines.push_back(std::string(access.request.method()) + " " +
                    std::string(access.request.target()) + " " + std::to_string(access.status));
  };
  return options;
}

std::string all_of(const HttpServer& server, std::string_view request) {
  net::TcpStream stream = server.connect();
  send_text(stream, request);
  return receive_all(stream);
}

TEST_SUITE_BEGIN("http/answer");

FIBER_TEST_CASE("a client reports an aborted response as an error, not as a complete response") {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), &std::fclose);
  std::fputs("abc", file.get());
  std::fflush(file.get());
  http::ServerOptions options;
  options.on_exception = [](std::exception_ptr) {};
  const HttpServer server(
      [&](http::Request& request, http::Response& response) {
        if (request.path() == "/file") {
          CHECK(response.write_file(::fileno(file.get()), 0, 1000) == http::Errc::wrong_length);
          return;
        }
        (void)response.write("abc");
        throw std::runtime_error("for the test");
      },
      options);
  for (const std::string path : {"/throw", "/file"}) {
    CHECK(all_of(server, "GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n")
              .ends_with("\r\n\r\n3\r\nabc\r\n"));
    // If the end of the connection ends an answer, a failure must not look like that end.
    net::TcpStream stream = server.connect();
    send_text(stream, "GET " + path + " HTTP/1.0\r\n\r\n");
    std::error_code end;
    std::array<std::byte, 4096> part;
    while (!end) end = stream.read_some(part).error;
    CHECK(end == std::errc::connection_reset);
  }
}

FIBER_TEST_CASE("a server sends no 100 Continue after the response has begun") {
  const HttpServer server([](http::Request& request, http::Response& response) {
    if (request.path() == "/send") {
      (void)response.send("begin:");
    } else {
      (void)response.write("begin:");
    }
    CHECK(request.read_all().value == "hello");
  });
  for (const std::string path : {"/send", "/write"}) {
    net::TcpStream stream = server.connect();
    send_text(stream, "POST " + path +
                          " HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
                          "Expect: 100-continue\r\n\r\n");
    const std::string begin = receive_until(stream, "begin:");
    CHECK(begin.starts_with("HTTP/1.1 200 OK\r\n"));
    CHECK(begin.find("Connection: close\r\n") != std::string::npos);
    send_text(stream, "hello");
    CHECK(receive_all(stream) == (path == "/send" ? "" : "\r\n0\r\n\r\n"));
  }
}

FIBER_TEST_CASE(
    "a server answers with 500 when a handler sets Content-Length but sends no body of that "
    "length") {
  std::vector<std::string> lines;
  {
    const HttpServer server(
        [](http::Request& request, http::Response& response) {
          response.add_header("Content-Length", "10");
          if (request.path() == "/send") {
            CHECK(response.send("abc") == http::Errc::wrong_length);
            CHECK_FALSE(response.started());
          }
        },
        options_with_log(lines));
    const auto answers = ask(server,
                             "GET /send HTTP/1.1\r\nHost: a\r\n\r\n"
                             "GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n"
                             "HEAD /nothing HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK(answers.at(0).status == 500);
    CHECK(answers.at(0).body == "Internal Server Error\n");
    CHECK(answers.at(1).status == 500);
    CHECK(answers.at(2).status == 200);
    CHECK(answers.at(2).has("Content-Length: 10"));
  }
  CHECK(lines ==
        std::vector<std::string>{"GET /send 500", "GET /nothing 500", "HEAD /nothing 200"});
}

FIBER_TEST_CASE(
    "the access log shows the correct method and path when a request's body arrives together with "
    "the next request") {
  // Tests a buffer that is reused, and a buffer that a larger one replaces.
  for (const std::size_t padding : {10U, 4300U}) {
    std::vector<std::string> lines;
    http::ServerOptions options = options_with_log(lines);
    options.limits.head_bytes = 5000;
    options.limits.target_bytes = 4000;
    Event begun;
    std::size_t asked = 0;
    {
      const HttpServer server(
          [&](http::Request& request, http::Response& response) {
            begun.set();
            (void)response.send(request.read_all().value);
          },
          options);
      net::TcpStream stream = server.connect();
      send_text(stream, "POST /secret HTTP/1.1\r\nHost: a\r\nX: " + std::string(padding, 'x') +
                            "\r\nTransfer-Encoding: chunked\r\n\r\n");
      begun.wait();
      std::string more = "1\r\nz\r\n0\r\n\r\n";
      for (; more.size() < 7900; ++asked) more += "GET /innocent HTTP/1.1\r\nHost: a\r\n\r\n";
      more += "GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
      send_text(stream, more);
      CHECK(receive_all(stream).ends_with("Connection: close\r\n\r\n"));
    }
    CHECK(lines.size() == asked + 2);
    CHECK(lines.front() == "POST /secret 200");
    CHECK(lines.back() == "GET /last 200");
  }
}

FIBER_TEST_CASE("the access log includes the responses to requests whose heads are refused") {
  std::vector<std::string> lines;
  const auto hello = [](http::Request&, http::Response& response) { (void)response.send("hello"); };
  {
    const HttpServer server(hello, options_with_log(lines));
    CHECK(ask(server, std::string(kGet) + "what is this\r\n\r\n").size() == 2);
  }
  {  // A new server: the first one has written its log by now.
    const HttpServer server(hello, options_with_log(lines));
    CHECK(ask(server,
              "POST /large HTTP/1.1\r\nHost: a\r\n"
              "Content-Length: 100000000\r\n\r\n")
              .at(0)
              .body == "Content Too Large\n");
  }
  CHECK(lines == std::vector<std::string>{"GET / 200", "  400", "POST /large 413"});
}

FIBER_TEST_CASE("a client can read a 413 response while it is still sending the refused body") {
  const HttpServer server([](http::Request&, http::Response&) {});
  const std::string body(16 << 20, 'x');
  // If a busy machine delays the client, the test repeats.
  bool told = false;
  for (int round = 0; round < 10 && !told; ++round) {
    net::TcpStream stream = server.connect();
    send_text(stream, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                          std::to_string(body.size()) + "\r\n\r\n");
    told = !stream.write_all(std::as_bytes(std::span(body))).error;
    (void)stream.shutdown(net::Shutdown::write);
    std::string text = receive_all(stream);
    told = told && take_answer(text).status == 413;
  }
  CHECK(told);
}

FIBER_TEST_CASE("an extra line break after a request body does not begin another request") {
  http::ServerOptions options;
  options.limits.head = std::chrono::milliseconds(20);
  HttpServer server([](http::Request& request,
                       http::Response& response) { (void)response.send(request.read_all().value); },
                    options);
  const std::string post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello\r\n";
  CHECK(ask(server, post).size() == 1);
  net::TcpStream stream = server.connect();
  for (int i = 0; i < 3; ++i) {
    send_text(stream, post);
    CHECK(receive_until(stream, "hello").starts_with("HTTP/1.1 200 OK\r\n"));
  }
  CHECK(server.stop(Deadline::never()));
  CHECK(receive_all(stream).empty());
}

FIBER_TEST_CASE("an upgraded connection receives the bytes that follow a chunked body") {
  Event begun;
  const HttpServer server([&](http::Request& request, http::Response& response) {
    begun.set();
    CHECK(request.read_all().value == "z");
    CHECK(response.upgrade("echo", [](http::Upgraded upgraded) {
      std::string text(upgraded.early);
      if (!text.ends_with('\n')) text += receive_until(upgraded.stream, "\n");
      send_text(upgraded.stream, text);
    }));
  });
  net::TcpStream stream = server.connect();
  send_text(stream,
            "POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n"
            "Transfer-Encoding: chunked\r\n\r\n");
  begun.wait();
  send_text(stream, "1\r\nz\r\n0\r\n\r\nearly");
  CHECK(receive_until(stream, "\r\n\r\n").starts_with("HTTP/1.1 101 Switching Protocols\r\n"));
  send_text(stream, " and late\n");
  CHECK(receive_all(stream) == "early and late\n");
}

FIBER_TEST_CASE("the host of an absolute request target overrides the Host header") {
  const HttpServer server([](http::Request& request, http::Response& response) {
    (void)response.send(request.host());
  });
  const auto answers = ask(server,
                           "GET http://a.test:81/b HTTP/1.1\r\nHost: b.test\r\n\r\n"
                           "GET http://a.test?b HTTP/1.1\r\nHost: b.test\r\n\r\n"
                           "GET /b HTTP/1.1\r\nHost: b.test\r\n\r\n");
  CHECK(answers.at(0).body == "a.test:81");
  CHECK(answers.at(1).body == "a.test");
  CHECK(answers.at(2).body == "b.test");
}

FIBER_TEST_CASE("a server sends a response with status 205 without a body") {
  const HttpServer server([](http::Request& request, http::Response& response) {
    response.set_status(205);
    if (request.path() == "/send") {
      CHECK(response.send("nothing of this"));
    } else if (request.path() == "/write") {
      CHECK(response.write("nothing of this"));
      CHECK(response.write("nor of this"));
    } else {
      response.add_header("Content-Length", "5");
    }
  });
  net::TcpStream stream = server.connect();
  for (const std::string path : {"/send", "/write", "/"}) {
    send_text(stream, "GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n");
    const std::string head = receive_until(stream, "\r\n\r\n");
    CHECK(head.starts_with("HTTP/1.1 205 Reset Content\r\n"));
    CHECK(head.find("\r\nContent-Length: 0\r\n") != std::string::npos);
    CHECK(head.find("Transfer-Encoding") == std::string::npos);
  }
}

SIM_TEST_CASE(
    "a server does not answer with 200 when a handler returns because the request context ended") {
  http::ServerOptions options;
  options.limits.request = 1min;
  const HttpServer server(
      [](http::Request& request, http::Response& response) {
        if (request.path() == "/done") response.set_status(201);
        (void)wait_for_end(request.context());
      },
      options);
  net::TcpStream stream = server.connect();
  CHECK(ask_once(stream, kGet).status == 503);
  CHECK(ask_once(stream, kGet).status == 503);  // On the same connection.
  CHECK(ask_once(stream, "GET /done HTTP/1.1\r\nHost: a\r\n\r\n").status == 201);
}

FIBER_TEST_CASE("a client that shuts down its sending side gets 503 for its pending request") {
  const HttpServer server([](http::Request& request, http::Response&) {
    CHECK(wait_for_end(request.context()) == Errc::cancelled);
  });
  const auto answers = ask(server, kGet);
  CHECK(answers.size() == 1);
  CHECK(answers.at(0).status == 503);
}

FIBER_TEST_CASE(
    "a server-sent event stream sends each event immediately, with one data field for each line") {
  Event seen;
  const HttpServer server([&seen](http::Request& request, http::Response& response) {
    http::EventStream events(request, response);
    CHECK(events.comment());
    seen.wait();
    CHECK(events.send({.data = "a\r\nb\rc\n", .event = "x", .id = "8", .retry = 5s}));
    CHECK(events.send({.data = events.last_id()}));
    CHECK(events.send({.id = ""}));
    CHECK_THROWS_AS((void)events.send({.event = "a\nb"}), std::invalid_argument);
    CHECK_THROWS_AS((void)events.send({.id = std::string_view("\0", 1)}), std::invalid_argument);
    CHECK_THROWS_AS((void)events.send({.retry = -1s}), std::invalid_argument);
  });
  net::TcpStream stream = server.connect();
  send_text(stream, "GET / HTTP/1.0\r\nLast-Event-ID: 7\r\n\r\n");
  const std::string head = receive_until(stream, "\r\n\r\n");
  CHECK(head.find("\r\nContent-Type: text/event-stream\r\n") != std::string::npos);
  CHECK(receive_until(stream, "\n\n") == ": \n\n");
  seen.set();
  CHECK(receive_all(stream) ==
        "event: x\nid: 8\nretry: 5000\ndata: a\ndata: b\ndata: c\ndata: \n\n"
        "data: 7\n\nid: \n\n");
}

FIBER_TEST_CASE("a server-sent event stream ends when its client disconnects") {
  Event ended;
  const HttpServer server([&ended](http::Request& request, http::Response& response) {
    http::EventStream events(request, response);
    CHECK(events.send({.data = "x"}));
    CHECK(wait_for_end(events.context()) == Errc::cancelled);
    CHECK(events.status() == Errc::cancelled);
    CHECK(events.comment() == Errc::cancelled);
    ended.set();
  });
  net::TcpStream stream = server.connect();
  send_text(stream, kGet);
  CHECK(receive_until(stream, "data: x\n\n").ends_with("data: x\n\n"));
  stream.close();
  ended.wait();
}

FIBER_TEST_CASE("response headers can be replaced and removed until the response has begun") {
  const HttpServer server([](http::Request& request, http::Response& response) {
    response.add_header("A", "1");
    response.add_header("B", "2");
    response.add_header("a", "3");
    response.add_header("AA", "4");
    response.add_header("Content-Length", "9");
    CHECK_THROWS_AS(response.set_header("A", "x\n"), std::invalid_argument);
    CHECK_THROWS_AS(response.set_header("Content-Length", "x"), std::invalid_argument);
    response.set_header("a", "5");
    response.remove_header("b");
    response.remove_header("none");
    response.remove_header("content-length");
    std::string values;
    for (const std::string& value : request.query_values("k")) values += value + ";";
    CHECK(response.send(values));
    response.set_header("A", "6");
    response.remove_header("A");
  });
  const Answer answer =
      ask(server, "GET /?k=1&K=2&k&k=a%20b+c&kk=3 HTTP/1.1\r\nHost: a\r\n\r\n").at(0);
  CHECK(answer.body == "1;;a b c;");
  CHECK(answer.head.find("\r\nAA: 4\r\na: 5\r\nContent-Length: 9\r\n") != std::string::npos);
  CHECK_FALSE(answer.has("A: 1"));
  CHECK_FALSE(answer.has("B: 2"));
}

TEST_SUITE_END();

}  // namespace

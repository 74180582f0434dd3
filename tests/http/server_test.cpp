#include <weft/http/server.hpp>

#include <array>
#include <stdexcept>
#include <string>
#include <thread>
#include <weft/barrier.hpp>
#include <weft/event.hpp>
#include <weft/http/error.hpp>
#include <weft/pool.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/http_test.hpp"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

TEST_SUITE_BEGIN("http/server");

FIBER_TEST_CASE("a server answers many requests on one connection, one after another") {
  HttpServer server(say_hello);
  net::TcpStream stream = server.connect();
  for (int i = 0; i < 50; ++i) {
    const Answer answer = ask_once(stream, kGet);
    CHECK(answer.status == 200);
    CHECK(answer.body == "hello");
  }
  stream.close();
  server.stop();
  CHECK(server.server().stats().requests == 50);
  CHECK(server.server().stats().accepted == 1);
}

FIBER_TEST_CASE("a server answers pipelined requests in the order in which they arrive") {
  const HttpServer server([](http::Request& request, http::Response& response) {
    if (request.path() == "/1") this_fiber::yield();
    (void)response.send(request.path());
  });
  std::string requests;
  for (int i = 0; i < 300; ++i) {
    requests += "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: a\r\n\r\n";
  }
  const auto answers = ask(server, requests);
  CHECK(answers.size() == 300);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    CHECK(answers[i].body.substr(1) == std::to_string(i));
  }
}

FIBER_TEST_CASE("a handler reads the method, path, query and headers of a request") {
  const HttpServer server([](http::Request& request, http::Response& response) {
    CHECK(request.method() == "GET");
    CHECK(request.target() == "/a%20b?c=d+e&f=%41&g");
    CHECK(request.path() == "/a%20b");
    CHECK(request.query() == "c=d+e&f=%41&g");
    CHECK(request.query_value("c") == "d e");
    CHECK(request.query_value("f") == "A");
    CHECK(request.query_value("g") == "");
    CHECK_FALSE(request.query_value("h"));
    CHECK(request.minor_version() == 1);
    CHECK(request.headers().size() == 3);
    CHECK(request.header("x-one") == "1");
    CHECK(request.header("X-TWO") == "b, c");
    CHECK_FALSE(request.header("x"));
    CHECK(request.host() == "example.org:80");
    CHECK_FALSE(request.has_body());
    CHECK(request.content_length() == 0);
    CHECK_FALSE(request.peer_address().error);
    (void)response.send({});
  });
  const auto answers = ask(server,
                           "GET /a%20b?c=d+e&f=%41&g HTTP/1.1\r\nHost: example.org:80\r\n"
                           "X-One: 1\r\nx-two:  b, c \r\n\r\n");
  CHECK(answers.size() == 1);
}

FIBER_TEST_CASE("a handler reads and writes chunked bodies as streams") {
  const HttpServer server([](http::Request& request, http::Response& response) {
    std::array<std::byte, 7> part;
    for (;;) {
      const auto [count, error] = request.read_some(part);
      if (error == Errc::end_of_stream) break;
      CHECK_FALSE(error);
      CHECK(response.write(std::span(part).first(count)));
    }
    CHECK(request.trailers().size() == 2);
    CHECK(request.trailers()[1].value == "two");
  });
  net::TcpStream stream = server.connect();
  send_text(stream,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
            "5\r\nhello\r\na;x\r\n, world! 1\r\n0\r\nA: one\r\nB:two\r\n\r\n");
  const std::string head = receive_until(stream, "\r\n\r\n");
  CHECK(head.find("Transfer-Encoding: chunked\r\n") != std::string::npos);
  CHECK(head.find("Content-Length") == std::string::npos);
  CHECK(receive_until(stream, "\r\n0\r\n\r\n") ==
        "5\r\nhello\r\n7\r\n, world\r\n3\r\n! 1\r\n0\r\n\r\n");
  CHECK(ask_once(stream,
                 "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
                 "A: b\r\nC: two\r\n\r\n")
            .status == 200);
}

FIBER_TEST_CASE("a server sends 100 Continue when the handler reads the body") {
  Event may_read;
  const HttpServer server([&](http::Request& request, http::Response& response) {
    may_read.wait();
    (void)response.send(request.read_all().value);
  });
  net::TcpStream stream = server.connect();
  send_text(stream,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
  may_read.set();
  CHECK(receive_until(stream, "\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
  CHECK(ask_once(stream, "hello").body == "hello");
  CHECK(ask_once(stream, kGet).status == 200);
}

FIBER_TEST_CASE(
    "a server closes the connection after its response if the handler did not read a body "
    "announced by Expect: 100-continue") {
  const HttpServer server(say_hello);
  net::TcpStream stream = server.connect();
  const Answer answer = ask_once(
      stream, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
  CHECK(answer.status == 200);
  CHECK(answer.has("Connection: close"));
  CHECK(receive_all(stream).empty());
}

FIBER_TEST_CASE(
    "a server discards a small unread body, but closes the connection if the unread body is "
    "large") {
  const HttpServer server(say_hello);
  net::TcpStream stream = server.connect();
  CHECK(ask_once(stream, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello").body ==
        "hello");
  CHECK(ask_once(stream,
                 "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                 "5\r\nhello\r\n0\r\n\r\n")
            .body == "hello");
  const Answer last =
      ask_once(stream, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
  CHECK(last.status == 200);
  CHECK(last.has("Connection: close"));
  CHECK(receive_all(stream).empty());
}

FIBER_TEST_CASE(
    "a server answers HEAD with the length of the body, if known, but without the body") {
  const HttpServer server([](http::Request& request, http::Response& response) {
    if (request.path() == "/stream") {
      CHECK(response.write("part"));
      return;
    }
    (void)response.send("hello");
  });
  const auto answers = ask(server,
                           "HEAD /stream HTTP/1.1\r\nHost: a\r\n\r\nHEAD / HTTP/1.1\r\nHost: a\r\n"
                           "Connection: close\r\n\r\n");
  // take_answer() relies on the length, so the test itself checks for bytes after the answer.
  net::TcpStream stream = server.connect();
  send_text(stream, "HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  const std::string text = receive_all(stream);
  CHECK(text.find("Content-Length: 5\r\n") != std::string::npos);
  CHECK(text.ends_with("\r\n\r\n"));
  CHECK(answers.size() == 2);
}

FIBER_TEST_CASE(
    "a server closes the connection when a response is shorter than its Content-Length") {
  const HttpServer server([](http::Request& request, http::Response& response) {
    response.add_header("Content-Length", "10");
    CHECK(response.write("01234"));
    if (request.path() == "/more") {
      CHECK(response.write("567890") == http::Errc::wrong_length);
      CHECK(response.write("56789"));
    }
    CHECK(response.send("x") == http::Errc::already_started);
  });
  net::TcpStream stream = server.connect();
  CHECK(ask_once(stream, "GET /more HTTP/1.1\r\nHost: a\r\n\r\n").body == "0123456789");
  send_text(stream, kGet);
  CHECK(receive_all(stream).ends_with("\r\n\r\n01234"));
}

FIBER_TEST_CASE(
    "a server closes the connection after a response of unknown length to an HTTP/1.0 request") {
  const HttpServer server([](http::Request&, http::Response& response) {
    CHECK(response.write("one"));
    CHECK(response.write("two"));
  });
  net::TcpStream stream = server.connect();
  send_text(stream, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const std::string text = receive_all(stream);
  CHECK(text.find("Connection: close\r\n") != std::string::npos);
  CHECK(text.ends_with("\r\n\r\nonetwo"));
}

FIBER_TEST_CASE("a response with status 204 or 304 has no body") {
  const HttpServer server([](http::Request& request, http::Response& response) {
    response.set_status(request.path() == "/204" ? 204 : 304);
    (void)response.send("nothing of this");
  });
  net::TcpStream stream = server.connect();
  for (const std::string path : {"/204", "/304"}) {
    send_text(stream, "GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n");
    const std::string head = receive_until(stream, "\r\n\r\n");
    CHECK(head.starts_with("HTTP/1.1 " + path.substr(1)));
    CHECK(head.find("Content-Length") == std::string::npos);
  }
}

FIBER_TEST_CASE("a server refuses headers that would allow response splitting") {
  const HttpServer server([](http::Request&, http::Response& response) {
    CHECK_THROWS_AS(response.add_header("A b", "c"), std::invalid_argument);
    CHECK_THROWS_AS(response.add_header("A", "b\r\nC: d"), std::invalid_argument);
    CHECK_THROWS_AS(response.add_header("A", std::string_view("\0", 1)), std::invalid_argument);
    CHECK_THROWS_AS(response.add_header("Transfer-Encoding", "x"), std::invalid_argument);
    CHECK_THROWS_AS(response.add_header("content-length", "5x"), std::invalid_argument);
    response.add_header("X-Good", "yes");
    (void)response.send({});
  });
  CHECK(ask(server, kGet).at(0).has("X-Good: yes"));
}

FIBER_TEST_CASE("a server answers with 500 and reports the exception when a handler throws") {
  int reports = 0;
  http::ServerOptions options;
  options.on_exception = [&](std::exception_ptr) { ++reports; };
  {
    const HttpServer server(
        [](http::Request& request, http::Response& response) {
          if (request.path() == "/late") (void)response.write("part");
          throw std::runtime_error("for the test");
        },
        options);
    net::TcpStream stream = server.connect();
    CHECK(ask_once(stream, kGet).status == 500);
    CHECK(ask_once(stream, kGet).status == 500);  // On the same connection.
    send_text(stream, "GET /late HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK(receive_all(stream).find("part") != std::string::npos);
  }
  CHECK(reports == 3);
}

FIBER_TEST_CASE("the access log has a line for each response") {
  std::vector<std::string> lines;
  http::ServerOptions options;
  options.on_access = [&](const http::Access& access) {
    CHECK(access.duration >= 0ns);
    lines.push_back(std::string(access.request.method()) + " " +
                    std::string(access.request.target()) + " " + std::to_string(access.status) +
                    " " + std::to_string(access.bytes));
  };
  {
    const HttpServer server(say_hello, options);
    (void)ask(server, "GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
  }
  CHECK(lines == std::vector<std::string>{"GET /x 200 5"});
}

THREAD_TEST_CASE("a plain thread runs serve(), and another plain thread stops the server") {
  auto listener = net::TcpListener::listen(net::Address::loopback_v4(0)).value;
  const net::Address address = listener.local_address().value;
  http::Server server([](http::Request&, http::Response& response) { (void)response.send("x"); });
  std::thread serving([&] { CHECK(server.serve(listener)); });
  {
    net::TcpStream stream = net::TcpStream::connect(address).value;
    send_text(stream, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    CHECK(receive_all(stream).ends_with("x"));
  }
  CHECK(server.shutdown(Deadline::never()));
  serving.join();
}

FIBER_TEST_CASE("a server refuses invalid options and names the option") {
  const auto message_of = [](http::ServerOptions options) -> std::string {
    try {
      const http::Server server(say_hello, std::move(options));
    } catch (const std::invalid_argument& refused) {
      return refused.what();
    }
    return "";
  };
  http::ServerOptions options;
  options.limits.headers = 129;
  CHECK(message_of(options) ==
        "weft::http::ServerOptions: limits.headers = 129; must be from 1 to 128");
  options = {};
  options.limits.head_bytes = 255;
  CHECK(message_of(options) ==
        "weft::http::ServerOptions: limits.head_bytes = 255; must be at least 256");
  options = {};
  options.limits.idle = -1ns;
  CHECK(message_of(options) == "weft::http::ServerOptions: limits.idle = -1 ns; must be above 0");
  options = {};
  options.max_running = 0;
  CHECK(message_of(options) == "weft::http::ServerOptions: max_running = 0; must be at least 1");
  CHECK_THROWS_AS(http::Server{http::Handler{}}, std::invalid_argument);
}

FIBER_TEST_CASE("a server lists its longest-running requests first") {
  Event called;
  Event may_end;
  const auto handler = [&](http::Request& request, http::Response& response) {
    called.set();
    may_end.wait();
    (void)response.send(request.read_all().value);
  };
  HttpServer server(handler);
  CHECK(server.server().longest_requests().empty());
  net::TcpStream slow = server.connect();
  send_text(slow, "GET / HT");  // Its head is not complete.
  // A coarse clock orders the requests.
  while (server.server().longest_requests().empty() ||
         server.server().longest_requests().front().age < std::chrono::milliseconds(20)) {
    this_fiber::yield();
  }
  net::TcpStream asked = server.connect();
  const std::string_view text = "POST /a?b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
  send_text(asked, text);
  called.wait();
  const auto requests = server.server().longest_requests();
  CHECK(server.server().longest_requests(1).size() == 1);
  CHECK(server.server().longest_requests(0).empty());
  CHECK(requests.size() == 2);
  if (requests.size() == 2) {
    CHECK(requests[0].peer == slow.local_address().value);
    CHECK(requests[0].method.empty());
    CHECK(requests[0].received == 8);
    CHECK(requests[0].age >= requests[1].age);
    CHECK(requests[1].peer == asked.local_address().value);
    CHECK(requests[1].method == "POST");
    CHECK(requests[1].target == "/a?b");
    CHECK(requests[1].received == text.size());
    CHECK(requests[1].sent == 0);
    CHECK(requests[1].fiber != 0);
  }
  may_end.set();
  send_text(slow, "TP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  CHECK(receive_all(slow).starts_with("HTTP/1.1 200"));
}

TEST_SUITE_END();

}  // namespace

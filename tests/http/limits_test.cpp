// Tests slow clients, full servers, and servers that stop.
#include <algorithm>
#include <atomic>
#include <weft/clock.hpp>
#include <weft/event.hpp>
#include <weft/http/server.hpp>
#include <weft/net/serve.hpp>
#include <weft/semaphore.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/http_test.hpp"
#include "tests/support/sim_test.hpp"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

TEST_SUITE_BEGIN("http/limits");

SIM_TEST_CASE("a server answers with 408 when a request head is not complete in time") {
  http::ServerOptions options;
  options.limits.head = 1min;
  const HttpServer server(say_hello, options);
  net::TcpStream stream = server.connect();
  send_text(stream, "GET / HTTP/1.1\r\nHos");
  std::string text = receive_all(stream);
  CHECK(take_answer(text).status == 408);
  CHECK(world.now() >= 1min);
  CHECK(world.now() < 2min);
}

SIM_TEST_CASE("a server answers with 408 when a request body is not complete in time") {
  http::ServerOptions options;
  options.limits.body = 1min;
  const HttpServer server(
      [](http::Request& request, http::Response& response) {
        const auto [body, error] = request.read_all();
        CHECK(error == Errc::timed_out);
        if (!error) (void)response.send(body);
      },
      options);
  for (const std::string_view begin :
       {"Content-Length: 10\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n5\r\nabc"}) {
    net::TcpStream stream = server.connect();
    send_text(stream, "POST / HTTP/1.1\r\nHost: a\r\n" + std::string(begin));
    std::string text = receive_all(stream);
    CHECK(take_answer(text).status == 408);
  }
}

SIM_TEST_CASE("a server disconnects a client that does not read its response") {
  http::ServerOptions options;
  options.limits.write = 1min;
  std::error_code error;
  Event ended;
  const HttpServer server(
      [&](http::Request&, http::Response& response) {
        const std::string part(1 << 20, 'x');
        while (!error) error = response.write(part);
        ended.set();
      },
      options);
  net::TcpStream stream = server.connect();
  send_text(stream, kGet);
  ended.wait();
  CHECK(error == Errc::timed_out);
}

SIM_TEST_CASE("a server closes a connection when no request arrives within the idle time") {
  http::ServerOptions options;
  options.limits.idle = 24h;
  const HttpServer server(say_hello, options);
  net::TcpStream silent = server.connect();
  net::TcpStream stream = server.connect();
  for (int i = 0; i < 3; ++i) {
    world.run_for(23h);
    CHECK(ask_once(stream, kGet).status == 200);
  }
  const auto last = Clock::now();
  CHECK(receive_all(stream).empty());
  CHECK(Clock::now() - last >= 24h);
  CHECK(Clock::now() - last <= 24h + 1s);
  CHECK(receive_all(silent).empty());
}

// The first call gets no fiber that would check for idle connections.
FIBER_TEST_CASE_WITH(
    "a second serve() closes idle connections even if the first serve() could not start the idle "
    "check",
    {.workers = {1}, .options = {.max_fibers = 1}}) {
  http::Server server(say_hello, {.limits = {.idle = 30ms}});
  net::TcpListener listener = net::TcpListener::listen(net::Address::loopback_v4(0)).value;
  {
    Event go_on;
    WaitGroup waiting;
    CHECK_THROWS_AS(for (;;) waiting.go([&] { go_on.wait(); }), std::system_error);
    CHECK_THROWS_AS((void)server.serve(listener), std::system_error);
    go_on.set();
    waiting.wait();
  }
  auto serving = spawn([&] { return server.serve(listener); });
  net::TcpStream silent = net::TcpStream::connect(listener.local_address().value).value;
  CHECK(receive_all(silent).empty());
  server.shutdown(Deadline::after(20s));
  CHECK(serving.join());
}

FIBER_TEST_CASE(
    "a server runs at most max_running handlers and answers a further request with 503") {
  http::ServerOptions options;
  options.max_running = 2;
  options.max_queued = 1;
  options.retry_after = 7s;
  Event go_on;
  Semaphore begun(0);
  std::atomic<int> running{0};
  HttpServer server(
      [&](http::Request&, http::Response& response) {
        CHECK(++running <= 2);
        begun.release();
        go_on.wait();
        --running;
        (void)response.send("hello");
      },
      options);
  // Connections without a request hold no slot.
  std::vector<net::TcpStream> idle;
  for (int i = 0; i < 8; ++i) idle.push_back(server.connect());
  std::vector<net::TcpStream> busy;
  for (int i = 0; i < 2; ++i) {
    busy.push_back(server.connect());
    send_text(busy.back(), kGet);
    begun.acquire();
  }
  // One of the next requests is queued, but it is not known which one. All others are refused.
  std::vector<net::TcpStream> more;
  for (int i = 0; i < 4; ++i) {
    more.push_back(server.connect());
    send_text(more.back(), kGet);
  }
  while (server.server().stats().refused < 3) this_fiber::yield();
  go_on.set();
  int answered = 0;
  for (net::TcpStream& stream : more) {
    const Answer answer = receive_answer(stream);
    if (answer.status == 200) {
      ++answered;
      continue;
    }
    CHECK(answer.status == 503);
    CHECK(answer.has("Retry-After: 7"));
    CHECK_FALSE(answer.has("Connection: close"));
  }
  CHECK(answered == 1);
  for (net::TcpStream& stream : busy) CHECK(receive_answer(stream).status == 200);
  // The refused clients repeat their requests on the same connections.
  for (net::TcpStream& stream : more) {
    send_text(stream, kGet);
    CHECK(receive_answer(stream).status == 200);
  }
}

FIBER_TEST_CASE(
    "connections beyond max_connections wait in the backlog until the server accepts them") {
  http::ServerOptions options;
  options.max_connections = 2;
  options.limits.idle = kNever - 1ns;  // A very long time, but not "never": sums must not overflow.
  const HttpServer server(say_hello, options);
  std::vector<net::TcpStream> streams;
  for (int i = 0; i < 3; ++i) {
    streams.push_back(server.connect());
    send_text(streams.back(), kGet);
    if (i < 2) CHECK(receive_answer(streams.back()).status == 200);
  }
  streams[0].close();
  CHECK(receive_answer(streams[2]).status == 200);
}

FIBER_TEST_CASE(
    "serve() accepts from several listeners that share a port, and closes them before it returns") {
  auto shared = net::listen_shared(net::Address::loopback_v4(0), 3);
  CHECK_FALSE(shared.error);
  std::vector<net::TcpListener>& listeners = shared.value;
  const net::Address address = listeners.front().local_address().value;
  http::Server server(say_hello);
  auto loop = spawn([&] { return server.serve(listeners); });
  for (int i = 0; i < 20; ++i) {
    auto [stream, refused] = net::TcpStream::connect(address);
    CHECK_FALSE(refused);
    send_text(stream, kGet);
    CHECK(receive_answer(stream).body == "hello");
  }
  CHECK(server.shutdown(Deadline::never()));
  CHECK(loop.join());
  CHECK(net::TcpStream::connect(address).error == std::errc::connection_refused);
  CHECK(server.stats().accepted == 20);
}

FIBER_TEST_CASE("the context of a request ends when the client hangs up") {
  Event begun;
  Event ended;
  HttpServer server([&](http::Request& request, http::Response& response) {
    Context& context = request.context();
    begun.set();
    CHECK(wait_for_end(context) == Errc::cancelled);
    ended.set();
    (void)response.send({});
  });
  net::TcpStream stream = server.connect();
  send_text(stream, kGet);
  begun.wait();
  stream.close();
  ended.wait();
}

FIBER_TEST_CASE(
    "a client's hang-up ends the context of a request even after the handler has read the body") {
  Event begun;
  Event ended;
  HttpServer server([&](http::Request& request, http::Response& response) {
    Context& context = request.context();
    CHECK(request.read_all().value == "hello");
    begun.set();
    CHECK(wait_for_end(context) == Errc::cancelled);
    ended.set();
    (void)response.send({});
  });
  net::TcpStream stream = server.connect();
  send_text(stream, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
  begun.wait();
  stream.close();
  ended.wait();
}

FIBER_TEST_CASE(
    "a client's hang-up ends the request context even if the handler requests the context later") {
  http::ServerOptions options;
  options.limits.request = 30s;  // Ends the test if the case fails.
  std::atomic<int> cancelled{0};
  const auto wait_for_the_end = [&](http::Request& request, http::Response& response) {
    (void)request.read_all();
    if (wait_for_end(request.context()) == Errc::cancelled) ++cancelled;
    (void)response.send({});
  };
  // Each client has sent everything and closed before the server accepts it: one edge reports both.
  auto listener = net::TcpListener::listen(net::Address::loopback_v4(0)).value;
  const net::Address address = listener.local_address().value;
  const std::string body = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
  for (const std::string& text : {std::string(kGet), body, std::string(kGet) + body}) {
    auto [stream, refused] = net::TcpStream::connect(address);
    CHECK_FALSE(refused);
    send_text(stream, text);
  }
  http::Server server(wait_for_the_end, options);
  auto loop = spawn([&] { return server.serve(listener); });
  while (server.stats().accepted < 3 || server.stats().connections > 0) this_fiber::yield();
  CHECK(cancelled >= 3);  // An answer to a lost client may fail before the next request is read.
  CHECK(server.shutdown(Deadline::never()));
  CHECK(loop.join());
}

FIBER_TEST_CASE(
    "a client's hang-up ends the request context even if the client has pipelined another "
    "request") {
  Event begun;
  HttpServer server([&](http::Request& request, http::Response& response) {
    Context& context = request.context();
    begun.set();
    CHECK(wait_for_end(context) == Errc::cancelled);
    (void)response.send({});
  });
  net::TcpStream stream = server.connect();
  send_text(stream, kGet);
  begun.wait();
  send_text(stream, kGet);
  stream.close();
  while (server.server().stats().connections > 0) this_fiber::yield();
}

FIBER_TEST_CASE("a connection stays usable after a handler has used the request context") {
  const HttpServer server([](http::Request& request, http::Response& response) {
    CHECK_FALSE(request.context().is_over());
    (void)response.send(request.read_all().value);
  });
  net::TcpStream stream = server.connect();
  for (int i = 0; i < 100; ++i) {
    send_text(stream, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    CHECK(receive_answer(stream).body == "hello");
  }
  std::string pipelined;
  for (int i = 0; i < 20; ++i) pipelined += kGet;
  send_text(stream, pipelined);  // It stays open: a client that closes its side counts as gone.
  for (int i = 0; i < 20; ++i) CHECK(receive_answer(stream).status == 200);
}

SIM_TEST_CASE("the context of a request ends when the request's deadline has passed") {
  http::ServerOptions options;
  options.limits.request = 1h;
  const HttpServer server(
      [](http::Request& request, http::Response& response) {
        CHECK(wait_for_end(request.context()) == Errc::timed_out);
        response.set_status(504);
        (void)response.send({});
      },
      options);
  // The server treats a client that closes its side as gone.
  net::TcpStream stream = server.connect();
  send_text(stream, kGet);
  CHECK(receive_answer(stream).status == 504);
}

SIM_TEST_CASE("a stopping server answers pending requests and closes idle connections") {
  Event begun;
  Event go_on;
  HttpServer server([&](http::Request&, http::Response& response) {
    begun.set();
    go_on.wait();
    (void)response.send("hello");
  });
  std::vector<net::TcpStream> idle;
  for (int i = 0; i < 100; ++i) idle.push_back(server.connect());
  net::TcpStream stream = server.connect();
  send_text(stream, kGet);
  begun.wait();
  while (server.server().stats().accepted < 101) this_fiber::yield();
  auto stopped = spawn([&] { return server.server().shutdown(Deadline::never()); });
  for (net::TcpStream& one : idle) CHECK(receive_all(one).empty());
  CHECK_FALSE(stopped.done());
  go_on.set();
  const Answer answer = receive_answer(stream);
  CHECK(answer.body == "hello");
  CHECK(answer.has("Connection: close"));
  CHECK(stopped.join());
}

FIBER_TEST_CASE(
    "request contexts end and connections are closed when a stopping server's grace period is "
    "over") {
  Event begun;
  Event closed;
  HttpServer server([&](http::Request& request, http::Response& response) {
    Context& context = request.context();
    begun.set();
    CHECK(wait_for_end(context));
    closed.wait();
    CHECK_FALSE(response.send("too late"));
  });
  net::TcpStream stream = server.connect();
  send_text(stream, kGet);
  begun.wait();
  auto in_time = spawn([&] { return server.stop(Deadline::past()); });
  CHECK(receive_all(stream).empty());
  closed.set();
  CHECK_FALSE(in_time.join());
}

FIBER_TEST_CASE(
    "a request that arrives while the server stops is either answered or never handled") {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> handled{0};
    std::atomic<int> answered{0};
    HttpServer server([&](http::Request&, http::Response& response) {
      ++handled;
      (void)response.send("hello");
    });
    WaitGroup clients;
    for (int i = 0; i < 8; ++i) {
      clients.go([&, stream = server.connect()]() mutable {
        for (;;) {
          send_text(stream, kGet);
          const Answer answer = receive_answer(stream);
          if (answer.status != 200) return;
          ++answered;
          if (answer.has("Connection: close")) return;
        }
      });
    }
    while (answered < 50) this_fiber::yield();
    CHECK(server.stop(Deadline::never()));
    clients.wait();
    CHECK(answered == handled);
  }
}

TEST_SUITE_END();

}  // namespace

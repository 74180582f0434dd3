// Tests the context of a handler's calls, which the server opens.
#include <atomic>
#include <optional>
#include <weft/channel.hpp>
#include <weft/context.hpp>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/http/server.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/pool.hpp>

#include "io/poller.hpp"
#include "libs/http/server/hang_up.hpp"
#include "tests/support/http_test.hpp"
#include "tests/support/sim_test.hpp"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

// The receive has no limit, so only the context of the handler can end it.
ChannelStatus receive_in_handler() {
  Channel<int> never;
  std::optional<int> value;
  return never.receive_until(value);
}

TEST_SUITE_BEGIN("http/handler_context");

FIBER_TEST_CASE(
    "a client's disconnect ends the waits of a handler and of the fibers that the handler joins") {
  for (const bool in_pool : {false, true}) {
    Event begun;
    Event ended;
    FiberPool work({.capacity = 1});
    http::ServerOptions options;
    if (in_pool) options.max_running = 2;
    HttpServer server(
        [&](http::Request& request, http::Response&) {
          begun.set();
          CHECK(receive_in_handler() == ChannelStatus::stopped);
          CHECK(spawn(receive_in_handler).join() == ChannelStatus::stopped);
          CHECK(work.async(receive_in_handler).get() == ChannelStatus::stopped);
          CHECK(this_fiber::context() == &request.context());
          go([&] {
            CHECK(this_fiber::context() == nullptr);
            ended.set();
          });
          ended.wait();
        },
        options);
    net::TcpStream stream = server.connect();
    send_text(stream, kGet);
    begun.wait();
    stream.close();
    ended.wait();
  }
}

SIM_TEST_CASE("a handler's wait ends at the request's time limit") {
  http::ServerOptions options;
  options.limits.request = 1h;
  const HttpServer server(
      [](http::Request&, http::Response& response) {
        CHECK(spawn(receive_in_handler).join() == ChannelStatus::timed_out);
        response.set_status(504);
        (void)response.send("too late");
      },
      options);
  net::TcpStream stream = server.connect();
  send_text(stream, kGet);
  CHECK(receive_answer(stream).status == 504);
  CHECK(world.now() >= 1h);
  CHECK(world.now() < 2h);
}

FIBER_TEST_CASE(
    "a fiber that outlives its handler is cancelled and does not affect the next request") {
  std::optional<JoinHandle<ChannelStatus>> left;
  const HttpServer server([&](http::Request&, http::Response& response) {
    CHECK_FALSE(this_fiber::context()->is_over());
    if (!left) left.emplace(spawn(receive_in_handler));
    (void)response.send("hello");
  });
  net::TcpStream stream = server.connect();
  for (int i = 0; i < 2; ++i) {
    send_text(stream, kGet);
    CHECK(receive_answer(stream).body == "hello");
  }
  CHECK(left->join() == ChannelStatus::stopped);
}

FIBER_TEST_CASE_WITH(
    "a server starts no fiber for the request context when a handler does not use the context",
    {.workers = {1}}) {
  const HttpServer server(
      [](http::Request&, http::Response& response) { (void)response.send("hello"); });
  net::TcpStream stream = server.connect();
  const auto ask = [&] {
    for (int i = 0; i < 20; ++i) {
      send_text(stream, kGet);
      CHECK(receive_answer(stream).body == "hello");
    }
  };
  ask();
  const auto before = runtime.stats().spawned;
  ask();
  // A busy connection has a fiber; a context must not add one.
  CHECK(runtime.stats().spawned - before <= 20);
}

// A server that stops closes connections at any moment.
FIBER_TEST_CASE(
    "a context ends when the server begins to watch a connection that is already closed") {
  auto listener = net::TcpListener::listen(net::Address::loopback_v4(0));
  const auto client = net::TcpStream::connect(listener.value.local_address().value);
  auto accepted = listener.value.accept();
  (void)accepted.value.socket().handle()->close();
  Context context;
  const http::HangUpWatch watch(accepted.value, context);
  CHECK(wait_for_end(context) == Errc::cancelled);
}

TEST_SUITE_END();

}  // namespace

// Tests the end of a server: which clients it still serves, and when it ends.
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>
#include <weft/clock.hpp>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/net/serve.hpp>
#include <weft/pool.hpp>

#include "tests/net/serving.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/parked.hpp"
#include "tests/support/sim_test.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

TEST_SUITE_BEGIN("net/serve_drain");

namespace {

// Reads until the peer or the server closes the connection.
void read_on(TcpStream& stream) {
  std::array<std::byte, 8> buffer;
  while (!stream.read_some(buffer).error) {
  }
}

}  // namespace

SIM_TEST_CASE(
    "a draining server ends after its grace period when the pool has no room for the next "
    "connection") {
  FiberPool pool({.capacity = 1, .on_full = OnFull::block});
  Serving serving({.run = net::in_pool(pool), .grace = 1h}, read_on);
  std::vector<TcpStream> streams;
  for (int i = 0; i < 3; ++i) streams.push_back(serving.connect());
  wait_for([&] { return serving->stats().accepted == 2; });  // One is served, one waits for the
                                                             // pool.
  const auto drained = Clock::now();
  CHECK(serving.end() == std::error_code{});
  CHECK(Clock::now() - drained >= 1h);
  CHECK(Clock::now() - drained < 1h + 1s);
  CHECK(serving->stats().open == 0);
  CHECK(serving->stats().closed_late == 2);
  for (TcpStream& stream : streams) CHECK(has_ended(stream));
}

SIM_TEST_CASE(
    "a draining server ends idle connections while another connection is waiting for room in the "
    "pool") {
  FiberPool pool({.capacity = 1, .on_full = OnFull::block});
  Serving serving({.run = net::in_pool(pool), .grace = 1h}, [](Connection& connection) {
    CHECK(connection.wait_readable() == Errc::cancelled);
    return Next::close;
  });
  const TcpStream first = serving.connect();
  const TcpStream second = serving.connect();
  wait_for([&] { return serving->stats().accepted == 2; });
  CHECK(serving.end() == std::error_code{});
  CHECK(world.now() < 1min);
  CHECK(serving->stats().closed_late == 0);
}

FIBER_TEST_CASE(
    "a draining server serves clients that connected earlier, even at max_connections") {
  Event goes_on;
  Event begun;
  Serving serving({.max_connections = 1, .grace = 1h}, [&](Connection& connection) {
    begun.set();
    goes_on.wait();
    (void)answer_one(connection);
    return Next::close;
  });
  std::vector<TcpStream> streams;
  for (int i = 0; i < 4; ++i) {
    streams.push_back(serving.connect());
    CHECK(!streams.back().write_all(bytes("ask")).error);
    wait_for([&] { return has_arrived(streams.back()); });
  }
  begun.wait();
  serving->stop();
  goes_on.set();
  for (TcpStream& stream : streams) CHECK(read_text(stream, 3) == "ask");
  CHECK(serving.end() == std::error_code{});
  CHECK(serving->stats().accepted == 4);
  CHECK(serving->stats().refused == 0);
}

SIM_TEST_CASE("a server refuses a waiting client when the grace period of a drain ends") {
  Event begun;
  Serving serving(
      {.max_connections = 1,
       .on_refused =
           [](net::ByteStream stream) { (void)stream.write_all(bytes("late"), Deadline::past()); },
       .grace = 1h},
      [&](TcpStream& stream) {
        begun.set();
        read_on(stream);
      });
  TcpStream served = serving.connect();
  begun.wait();
  TcpStream waits = serving.connect();
  CHECK(serving.end() == std::error_code{});
  CHECK(has_ended(served));
  CHECK(read_text(waits, 4) == "late");
  CHECK(serving->stats().refused == 1);
  CHECK(serving->stats().closed_late == 1);
}

FIBER_TEST_CASE(
    "a stream that a handler has taken from its connection stays open when the grace period ends") {
  TcpStream kept;
  Event taken;
  Event goes_on;
  Serving serving({.grace = 0s}, [&](Connection& connection) {
    kept = std::get<TcpStream>(connection.take());
    taken.set();
    goes_on.wait();
    return Next::close;
  });
  TcpStream stream = serving.connect();
  taken.wait();
  serving->stop();
  wait_for([&] { return serving->stats().closed_late == 1; });
  goes_on.set();
  CHECK(serving.end() == std::error_code{});
  CHECK(!kept.write_all(bytes("still there")).error);
  CHECK(read_text(stream, 11) == "still there");
}

FIBER_TEST_CASE(
    "shutdown() waits for connections, and closes the remaining connections at its deadline") {
  Event begun;
  Event goes_on;
  Serving serving({.grace = 0s}, [&](Connection&) {
    begun.set();
    goes_on.wait();
  });
  TcpStream stream = serving.connect();
  begun.wait();
  auto stopped = spawn([&] { return serving->shutdown(Deadline::never()); });
  await_parked(runtime, "wait group", 2);  // serve() also waits. shutdown() sets the grace period.
  CHECK(serving->stats().closed_late == 0);
  goes_on.set();
  CHECK(stopped.join());
  CHECK(has_ended(stream));

  Serving other({.grace = 1h}, [](TcpStream& one) { read_on(one); });
  TcpStream stays = other.connect();
  wait_for([&] { return other->stats().open == 1; });
  CHECK_FALSE(other->shutdown(1ms));
  CHECK(has_ended(stays));
  CHECK(other.end() == std::error_code{});
}

FIBER_TEST_CASE(
    "shutdown() called by a handler does not wait for this or any other handler that has called "
    "shutdown()") {
  Server* server = nullptr;
  Serving serving({.grace = 1h}, [&](Connection& connection) {
    std::array<std::byte, 1> any;
    if (connection.bytes().read_exactly(any).error) return;
    CHECK(server->shutdown(Deadline::never()));
    CHECK_FALSE(connection.bytes().write_all(bytes("bye")).error);
  });
  server = serving.operator->();
  TcpStream first = serving.connect();
  TcpStream second = serving.connect();
  wait_for([&] { return serving->stats().open == 2; });
  CHECK_FALSE(first.write_all(bytes("x")).error);
  CHECK_FALSE(second.write_all(bytes("x")).error);
  CHECK(read_text(first, 3) == "bye");
  CHECK(read_text(second, 3) == "bye");
  CHECK(serving.end() == std::error_code{});
  CHECK(serving->stats().closed_late == 0);
}

FIBER_TEST_CASE(
    "a server whose shutdown() was called before serve() gives its clients only the grace period") {
  Server server(&read_on, {.grace = 1ms});
  TcpListener listener = listen_anywhere();
  auto [stream, error] = TcpStream::connect(listener.local_address().value);
  CHECK_FALSE(error);
  CHECK(server.shutdown(1ms));
  CHECK(server.serve(listener));
  CHECK(has_ended(stream));
}

FIBER_TEST_CASE("shutdown() called by a handler closes all connections except the handler's own") {
  Event others_are_closed;
  std::atomic<int> begun{0};
  Server* server = nullptr;
  Serving serving({.grace = 1h}, [&](Connection& connection) {
    ++begun;
    std::array<std::byte, 1> any;
    if (connection.bytes().read_exactly(any).error) return;
    CHECK_FALSE(server->shutdown(Deadline::past()));
    others_are_closed.set();
    read_on(connection.stream());
  });
  server = serving.operator->();
  TcpStream first = serving.connect();
  TcpStream second = serving.connect();
  wait_for([&] { return begun == 2; });
  CHECK_FALSE(first.write_all(bytes("x")).error);
  others_are_closed.wait();
  CHECK(has_ended(second));
  CHECK_FALSE(serving->shutdown(1ms));
  CHECK(has_ended(first));
  CHECK(serving.end() == std::error_code{});
  CHECK(serving->stats().closed_late == 2);
}

FIBER_TEST_CASE(
    "shutdown() called by a handler returns while another connection is waiting for room in the "
    "pool") {
  Server* server = nullptr;
  FiberPool pool({.capacity = 1});
  Serving serving({.run = net::in_pool(pool), .grace = 1h}, [&](Connection& connection) {
    std::array<std::byte, 1> any;
    if (connection.bytes().read_exactly(any).error) return;
    CHECK_FALSE(server->shutdown(1ms));
  });
  server = serving.operator->();
  TcpStream first = serving.connect();
  wait_for([&] { return serving->stats().open == 1; });
  TcpStream second = serving.connect();
  wait_for([&] { return serving->stats().open == 2; });
  wait_for([&] { return pool.stats().queued + pool.stats().blocked == 1; });
  CHECK_FALSE(first.write_all(bytes("x")).error);
  CHECK(serving.end() == std::error_code{});
}

SIM_TEST_CASE(
    "a connection accepted after a handler called shutdown() ends at the deadline of that "
    "shutdown()") {
  Server* server = nullptr;
  Serving serving({.max_connections = 1, .grace = 1h}, [&](Connection& connection) {
    std::array<std::byte, 1> any;
    if (connection.bytes().read_exactly(any).error) return;
    CHECK(server->shutdown(Deadline::after(1min)));  // The other client still waits.
  });
  server = serving.operator->();
  TcpStream first = serving.connect();
  wait_for([&] { return serving->stats().open == 1; });
  TcpStream second = serving.connect();
  const auto begun = Clock::now();
  CHECK_FALSE(first.write_all(bytes("x")).error);
  CHECK(has_ended(second));
  CHECK(serving.end() == std::error_code{});
  CHECK(Clock::now() - begun < 2min);
  CHECK(serving->stats().accepted == 2);
  CHECK(serving->stats().closed_late == 1);
}

FIBER_TEST_CASE("a server accepts a move-only handler") {
  Serving serving({}, [text = std::make_unique<std::string>("moved")](TcpStream& stream) {
    CHECK_FALSE(stream.write_all(bytes(*text)).error);
  });
  TcpStream stream = serving.connect();
  CHECK(read_text(stream, 5) == "moved");
}

TEST_SUITE_END();

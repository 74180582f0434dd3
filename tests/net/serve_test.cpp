#include <weft/net/serve.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>
#include <weft/blocking.hpp>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/latch.hpp>
#include <weft/metrics.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/net/serving.hpp"
#include "tests/support/descriptor_limit.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/sim_test.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using net::AtLimit;
using net::Connection;
using net::Next;
using net::Server;
using net::ServerOptions;
using net::TcpListener;
using net::TcpStream;

TEST_SUITE_BEGIN("net/serve");

FIBER_TEST_CASE("a server serves each connection until the server drains") {
  Serving serving({}, [](TcpStream& stream) { (void)echo(stream); });
  constexpr int kClients = 20;
  std::vector<JoinHandle<void>> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(spawn([&serving] {
      TcpStream stream = serving.connect();
      CHECK(ask(stream, "hello") == "hello");
    }));
  }
  for (auto& client : clients) client.join();
  CHECK(serving.end() == std::error_code{});
  CHECK(serving->stats().accepted == kClients);
  CHECK(serving->stats().open == 0);
  CHECK(serving->stats().refused == 0);
}

FIBER_TEST_CASE("serve() ends on a stop request or when the listener is closed") {
  std::stop_source stop;
  TcpListener listener = listen_anywhere();
  auto serving =
      spawn([&] { return net::serve(listener, {.stop = stop.get_token()}, [](TcpStream&) {}); });
  const auto somebody_waits = [] { return metrics::read().runtimes.at(0).parked_count > 0; };
  while (!somebody_waits()) this_fiber::yield();
  (void)stop.request_stop();
  CHECK(serving.join() == std::error_code{});
  TcpListener second = listen_anywhere();
  auto again = spawn([&] { return net::serve(second, [](TcpStream&) {}); });
  while (!somebody_waits()) this_fiber::yield();
  second.close();
  CHECK(again.join() == std::error_code{});
}

THREAD_TEST_CASE("a plain thread may call serve()") {
  Server server(answer_one);
  TcpListener listener = listen_anywhere();
  const net::Address address = listener.local_address().value;
  auto client = spawn([&] {
    auto [stream, error] = TcpStream::connect(address);
    CHECK(error == std::error_code{});
    CHECK(ask(stream, "thread") == "thread");
    server.stop();
  });
  CHECK(server.serve(listener) == std::error_code{});
  client.join();
}

FIBER_TEST_CASE("a new fiber serves an idle connection when bytes arrive") {
  Serving serving({}, answer_one);
  std::vector<TcpStream> streams;
  for (int i = 0; i < 10; ++i) streams.push_back(serving.connect());
  for (int round = 0; round < 20; ++round) {
    for (TcpStream& stream : streams) CHECK(ask(stream, "again") == "again");
  }
  CHECK(serving->stats().open == 10);
  streams.clear();
  wait_for([&] { return serving->stats().open == 0; });
}

FIBER_TEST_CASE("a drain ends idle connections at once, even while a fiber is waiting on them") {
  for (const bool keeps_fiber : {false, true}) {
    Serving serving({.grace = 1h}, [keeps_fiber](Connection& connection) {
      if (answer_one(connection) == Next::close) return Next::close;
      if (!keeps_fiber) return Next::idle;
      CHECK(connection.wait_readable() == Errc::cancelled);
      CHECK(connection.is_stopping());
      return Next::close;
    });
    TcpStream first = serving.connect();
    TcpStream second = serving.connect();
    CHECK(ask(first, "one") == "one");
    CHECK(ask(second, "two") == "two");
    CHECK(serving.end() == std::error_code{});
    CHECK(has_ended(first));
    CHECK(has_ended(second));
    CHECK(serving->stats().closed_late == 0);
  }
}

FIBER_TEST_CASE("a connection waits for its next request until a deadline or a stop request") {
  Serving serving({}, [](Connection& connection) {
    CHECK(connection.wait_readable(Deadline::after(1ms)) == Errc::timed_out);
    std::stop_source source;
    auto stopper = spawn([&] { (void)source.request_stop(); });
    CHECK(connection.wait_readable(source.get_token()) == Errc::cancelled);
    stopper.join();
    CHECK(!connection.is_stopping());
    blocking([&] {
      CHECK(connection.wait_readable(Deadline::after(1ms)) == Errc::timed_out);
      CHECK(connection.wait_readable(source.get_token()) == Errc::cancelled);
    });
    CHECK(!connection.stream().write_all(bytes("over")).error);
    return Next::close;
  });
  TcpStream client = serving.connect();
  CHECK(read_text(client, 4) == "over");
  CHECK(serving.end() == std::error_code{});
}

FIBER_TEST_CASE("a draining server answers a request that has already arrived") {
  Event goes_on;
  Serving serving({.grace = 1h}, [&](Connection& connection) {
    const Next next = answer_one(connection);
    goes_on.wait();
    return next;
  });
  TcpStream stream = serving.connect();
  CHECK(ask(stream, "first") == "first");
  CHECK(!stream.write_all(bytes("second")).error);
  // This client has connected, but the server may not have accepted it.
  TcpStream late = serving.connect();
  CHECK(!late.write_all(bytes("late")).error);
  // A busy system delivers bytes and connections later than it reports them.
  wait_for([&] { return has_arrived(stream) && has_arrived(late); });
  serving->stop();
  goes_on.set();
  CHECK(serving.end() == std::error_code{});
  CHECK(read_text(stream, 6) == "second");
  CHECK(read_text(late, 4) == "late");
}

SIM_TEST_CASE("a server closes a connection that exceeds the grace period") {
  Event begun;
  Serving serving({.grace = 1min}, [&](TcpStream& stream) {
    begun.set();
    std::array<std::byte, 8> buffer;
    CHECK(stream.read_some(buffer).error == Errc::closed);
  });
  const TcpStream stream = serving.connect();
  begun.wait();
  CHECK(serving.end() == std::error_code{});
  CHECK(world.now() >= 1min);
  CHECK(world.now() < 2min);
  CHECK(serving->stats().closed_late == 1);
}

SIM_TEST_CASE(
    "a server closes connections that exceed the idle time, and other connections continue") {
  Serving serving({.idle_timeout = 1h}, answer_one);
  TcpStream idle = serving.connect();
  TcpStream busy = serving.connect();
  CHECK(ask(idle, "once") == "once");
  auto ended = spawn([&] {
    CHECK(has_ended(idle));
    return world.now();
  });
  for (int i = 0; i < 12; ++i) {
    CHECK(ask(busy, "often") == "often");
    world.run_for(10min);
  }
  CHECK(ask(busy, "still") == "still");
  const auto idle_until = ended.join();
  CHECK(idle_until >= 1h);
  CHECK(idle_until < 1h + 1s);
  CHECK(has_ended(busy));
  CHECK(world.now() >= 3h);
  CHECK(world.now() < 3h + 1s);
  CHECK(serving->stats().timed_out == 2);
}

SIM_TEST_CASE("a server closes each connection when its own idle timeout expires") {
  Serving serving({.idle_timeout = 1h}, answer_one);
  WaitGroup clients;
  for (int i = 0; i < 100; ++i) {
    clients.go([&, i] {
      TcpStream stream = serving.connect();
      for (int request = 0; request <= i % 4; ++request) {
        CHECK(ask(stream, "ask") == "ask");
        this_fiber::sleep_for(std::chrono::minutes(i * i % 59));
      }
      CHECK(ask(stream, "last") == "last");
      const auto last = world.now();
      CHECK(has_ended(stream));
      CHECK(world.now() - last >= 1h);
      CHECK(world.now() - last < 1h + 1s);
    });
  }
  clients.wait();
  CHECK(serving->stats().timed_out == 100);
}

FIBER_TEST_CASE("connections beyond max_connections wait for the end of earlier connections") {
  Event goes_on;
  Serving serving({.max_connections = 2}, [&](TcpStream& stream) {
    goes_on.wait();
    (void)echo(stream);
  });
  std::vector<TcpStream> streams;
  for (int i = 0; i < 6; ++i) streams.push_back(serving.connect());
  wait_for([&] { return serving->stats().open == 2; });
  CHECK(serving->stats().accepted == 2);
  goes_on.set();
  for (TcpStream& stream : streams) {
    CHECK(ask(stream, "turn") == "turn");
    stream.close();
  }
  wait_for([&] { return serving->stats().open == 0; });
  CHECK(serving->stats().accepted == 6);
}

FIBER_TEST_CASE("a server with AtLimit::refuse refuses connections beyond max_connections") {
  Serving serving(
      {.max_connections = 2,
       .at_limit = AtLimit::refuse,
       .on_refused =
           [](net::ByteStream stream) { (void)stream.write_all(bytes("busy"), Deadline::past()); }},
      [](TcpStream& stream) { (void)echo(stream); });
  TcpStream first = serving.connect();
  TcpStream second = serving.connect();
  CHECK(ask(first, "a") == "a");
  CHECK(ask(second, "b") == "b");
  TcpStream third = serving.connect();
  CHECK(read_text(third, 4) == "busy");
  CHECK(has_ended(third));
  CHECK(serving->stats().refused == 1);
}

FIBER_TEST_CASE(
    "a server that runs its handlers in a pool refuses a connection when the pool refuses the "
    "task") {
  FiberPool pool({.capacity = 2, .on_full = OnFull::reject});
  Serving serving(
      {.on_refused =
           [](net::ByteStream stream) { (void)stream.write_all(bytes("full"), Deadline::past()); },
       .run = net::in_pool(pool)},
      [](TcpStream& stream) { (void)echo(stream); });
  TcpStream first = serving.connect();
  TcpStream second = serving.connect();
  CHECK(ask(first, "a") == "a");
  CHECK(ask(second, "b") == "b");
  TcpStream third = serving.connect();
  CHECK(read_text(third, 4) == "full");
  first.close();
  second.close();
  CHECK(serving.end() == std::error_code{});
  CHECK(serving->stats().refused == 1);
}

FIBER_TEST_CASE("one server serves TCP and Unix connections, and drains all of them") {
  TcpListener over_tcp = listen_anywhere();
  auto [over_unix, error] = net::UnixListener::listen(net::UnixAddress());
  REQUIRE(error == std::error_code{});
  const auto answer = [](Connection& connection) {
    std::array<std::byte, 4> buffer;
    if (connection.bytes().read_exactly(buffer).error) return Next::close;
    if (connection.is_unix()) {
      CHECK(connection.unix_stream().peer_credentials().value.process == ::getpid());
    }
    const std::string_view text = connection.is_unix() ? "unix" : "tcp!";
    return connection.bytes().write_all(bytes(text)).error ? Next::close : Next::idle;
  };
  Server server(answer, {.grace = 1h});
  const std::array<net::AnyListener, 2> all{over_tcp, over_unix};
  auto running = spawn([&] { return server.serve(all); });
  auto [client, refused] = TcpStream::connect(over_tcp.local_address().value);
  CHECK(refused == std::error_code{});
  auto [local, failed] = net::UnixStream::connect(over_unix.local_address().value);
  CHECK(failed == std::error_code{});
  for (int round = 0; round < 5; ++round) {
    CHECK(!client.write_all(bytes("ping")).error);
    CHECK(read_text(client, 4) == "tcp!");
    CHECK(!local.write_all(bytes("ping")).error);
    CHECK(read_text(local, 4) == "unix");
  }
  server.stop();
  CHECK(running.join() == std::error_code{});
  CHECK(server.stats().accepted == 2);
  CHECK(server.stats().closed_late == 0);
}

FIBER_TEST_CASE("one server serves a Unix listener alone or together with a TCP listener") {
  auto [listener, error] = net::UnixListener::listen(net::UnixAddress());
  REQUIRE(error == std::error_code{});
  const net::UnixAddress address = listener.local_address().value;
  auto running = spawn([&served = listener] {
    return net::serve(served, [](net::UnixStream& stream) { (void)echo(stream); });
  });
  auto [stream, refused] = net::UnixStream::connect(address);
  CHECK(refused == std::error_code{});
  CHECK(!stream.write_all(bytes("local")).error);
  CHECK(read_text(stream, 5) == "local");
  stream.close();
  listener.close();
  CHECK(running.join() == std::error_code{});
}

FIBER_TEST_CASE("one server serves several listeners that share a port") {
  auto [listeners, error] = net::listen_shared(net::Address::loopback_v4(0), 3);
  REQUIRE(error == std::error_code{});
  const net::Address address = listeners.front().local_address().value;
  Server server(answer_one);
  auto running = spawn([&server, &all = listeners] { return server.serve(all); });
  for (int i = 0; i < 30; ++i) {
    auto [stream, refused] = TcpStream::connect(address);
    CHECK(refused == std::error_code{});
    CHECK(ask(stream, "any") == "any");
  }
  server.stop();
  CHECK(running.join() == std::error_code{});
  CHECK(server.stats().accepted == 30);
}

FIBER_TEST_CASE("a server continues when more clients connect than it has descriptors") {
  Server server(answer_one);
  TcpListener listener = listen_anywhere();
  const net::Address address = listener.local_address().value;
  // The clients connect before the server begins, so that they get descriptors.
  std::vector<TcpStream> clients;
  for (int i = 0; i < 100; ++i) {
    auto [stream, error] = TcpStream::connect(address);
    CHECK(error == std::error_code{});
    clients.push_back(std::move(stream));
  }
  JoinHandle<Result<void>> running;
  {
    const DescriptorLimit limit(limit_that_leaves(64));
    running = spawn([&] { return server.serve(listener); });
    // Connections beyond the limit do not wait forever.
    while (server.stats().accepted < 100) this_fiber::sleep_for(1ms);
    CHECK(server.stats().pauses >= 3);
    CHECK(server.stats().refused == 100 - 63);
    int answered = 0;
    for (TcpStream& client : clients) {
      if (!client.write_all(bytes("ask")).error && read_text(client, 3) == "ask") ++answered;
    }
    CHECK(answered == 63);
    clients.clear();
    while (server.stats().open != 0) this_fiber::sleep_for(1ms);
  }
  auto [stream, error] = TcpStream::connect(address);
  CHECK(error == std::error_code{});
  CHECK(ask(stream, "alive") == "alive");
  server.stop();
  CHECK(running.join() == std::error_code{});
}

FIBER_TEST_CASE(
    "a server without free descriptors can refuse clients even if on_refused uses fibers") {
  const auto refuse = [](net::ByteStream stream) {
    go([stream = std::move(stream)]() mutable { (void)stream.write_all(bytes("busy")); });
  };
  Server server(answer_one, {.on_refused = refuse});
  TcpListener listener = listen_anywhere();
  const net::Address address = listener.local_address().value;
  std::vector<TcpStream> clients;
  for (int i = 0; i < 40; ++i) {
    auto [stream, error] = TcpStream::connect(address);
    CHECK(error == std::error_code{});
    clients.push_back(std::move(stream));
  }
  JoinHandle<Result<void>> running;
  {
    const DescriptorLimit limit(limit_that_leaves(16));
    running = spawn([&] { return server.serve(listener); });
    wait_for([&] { return server.stats().accepted == 40; });
    CHECK(server.stats().refused == 40 - 15);
    for (std::size_t i = 15; i < 40; ++i) CHECK(read_text(clients[i], 4) == "busy");
    clients.clear();
    wait_for([&] { return server.stats().open == 0; });
  }
  server.stop();
  CHECK(running.join() == std::error_code{});
}

TEST_SUITE_END();

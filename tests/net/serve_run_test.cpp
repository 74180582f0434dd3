// Tests the fibers that serve a connection: ServerOptions::run and stack_size, for the first
// request and for requests after an idle time without a fiber.
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <typeinfo>
#include <utility>
#include <vector>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/net/serve.hpp>
#include <weft/pool.hpp>

#include "io/poller.hpp"
#include "tests/net/serving.hpp"
#include "tests/support/fiber_test.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

TEST_SUITE_BEGIN("net/serve_run");

namespace {

// Answers one request; throws if the request begins with `t`.
Next answer_or_throw(Connection& connection) {
  std::array<std::byte, 1> request;
  if (connection.stream().read_exactly(request).error) return Next::close;
  if (request.front() == std::byte{'t'}) throw std::runtime_error("as it was asked to");
  return connection.stream().write_all(request).error ? Next::close : Next::idle;
}

// A message ends with a period, and may come in parts.
struct Message {
  Message(net::ByteStream& connected, std::atomic<int>& count) : stream(connected), alive(count) {
    ++alive;
  }
  ~Message() {
    if (stream.is_open_hint()) --alive;
  }
  net::ByteStream& stream;
  std::atomic<int>& alive;
  std::string text;
};

// Uses up more stack than a fiber has by default.
[[gnu::noinline]] std::size_t use_stack(std::size_t kibibytes) {
  volatile char frame[1024];
  frame[kibibytes % sizeof frame] = 1;
  if (kibibytes == 0) return 0;
  return use_stack(kibibytes - 1) + static_cast<std::size_t>(frame[kibibytes % sizeof frame]);
}

}  // namespace

FIBER_TEST_CASE(
    "a handler with a stream parameter keeps the connection when it returns Next::idle") {
  Serving serving({}, [](net::ByteStream& stream) {
    std::array<std::byte, 1> request;
    if (stream.read_exactly(request).error) return Next::close;
    return stream.write_all(request).error ? Next::close : Next::idle;
  });
  TcpStream stream = serving.connect();
  for (int i = 0; i < 3; ++i) CHECK(ask(stream, "a") == "a");
}

FIBER_TEST_CASE(
    "a connection keeps its state while it is idle, and destroys the state before its stream") {
  std::atomic<int> calls{0};
  std::atomic<int> alive{0};
  Serving serving({}, [&](Connection& connection) {
    auto& text = connection.state<Message>(connection.bytes(), alive).text;
    CHECK_THROWS_AS((void)connection.state<int>(), std::bad_cast);
    std::array<std::byte, 8> part;
    const auto [count, error] = connection.stream().read_some(part);
    if (error) return Next::close;
    text.append(reinterpret_cast<const char*>(part.data()), count);
    ++calls;
    if (text.ends_with('.') && connection.stream().write_all(std::exchange(text, {})).error) {
      return Next::close;
    }
    return Next::idle;
  });
  std::vector<TcpStream> streams;
  for (int i = 0; i < 2; ++i) streams.push_back(serving.connect());
  CHECK(!streams[0].write_all("good ").error);
  CHECK(!streams[1].write_all("bad ").error);
  wait_for([&] { return calls == 2; });
  for (TcpStream& stream : streams) CHECK(!stream.write_all("day.").error);
  CHECK(read_text(streams[0], 9) == "good day.");
  CHECK(read_text(streams[1], 8) == "bad day.");
  CHECK(alive == 2);
  streams.clear();
  wait_for([&] { return serving->stats().open == 0; });
  CHECK(alive == 0);
}

FIBER_TEST_CASE("ServerOptions::run starts the task for each request that follows an idle period") {
  constexpr int kClients = 6;
  constexpr int kRounds = 3;
  FiberPool pool({.capacity = 2, .on_full = OnFull::block});
  std::atomic<int> started{0};
  std::atomic<int> at_once{0};
  std::atomic<int> most{0};
  const auto in_the_pool = net::in_pool(pool);
  Serving serving({.run =
                       [&](detail::Task&& task) {
                         ++started;
                         return in_the_pool(std::move(task));
                       }},
                  [&](Connection& connection) {
                    const int now = ++at_once;
                    for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
                    }
                    const Next next = answer_one(connection);
                    this_fiber::yield();
                    --at_once;
                    return next;
                  });
  std::vector<TcpStream> streams;
  for (int i = 0; i < kClients; ++i) streams.push_back(serving.connect());
  for (int round = 0; round < kRounds; ++round) {
    for (TcpStream& stream : streams) CHECK(!stream.write_all(bytes("ask")).error);
    for (TcpStream& stream : streams) CHECK(read_text(stream, 3) == "ask");
    pool.wait_idle();  // All connections are idle.
  }
  CHECK(started == kClients * kRounds);
  CHECK(most <= 2);
  CHECK(serving->stats().refused == 0);
}

FIBER_TEST_CASE("an idle connection is refused when the pool has no room for its next request") {
  FiberPool pool({.capacity = 1, .on_full = OnFull::reject});
  Event goes_on;
  std::atomic<int> calls{0};
  Serving serving(
      {.on_refused =
           [](net::ByteStream stream) { (void)stream.write_all(bytes("full"), Deadline::past()); },
       .run = net::in_pool(pool)},
      [&](Connection& connection) {
        const int call = ++calls;
        const Next next = answer_one(connection);
        if (call == 2) goes_on.wait();
        return next;
      });
  TcpStream idle = serving.connect();
  CHECK(ask(idle, "first") == "first");
  pool.wait_idle();
  TcpStream busy = serving.connect();
  CHECK(ask(busy, "second") == "second");
  CHECK(ask(idle, "next") == "full");
  CHECK(has_ended(idle));
  CHECK(serving->stats().refused == 1);
  CHECK(calls == 2);
  goes_on.set();
}

FIBER_TEST_CASE("a spurious event on an idle connection starts no task in the pool") {
  FiberPool pool({.capacity = 1, .on_full = OnFull::block});
  std::atomic<int> calls{0};
  std::atomic<io::IoHandle*> handle{nullptr};
  Serving serving({.run = net::in_pool(pool)}, [&](Connection& connection) {
    if (++calls == 1) handle = connection.bytes().socket().handle();
    return answer_one(connection);
  });
  TcpStream idle = serving.connect();
  CHECK(ask(idle, "first") == "first");
  pool.wait_idle();
  const std::uint64_t finished = runtime.stats().finished;
  (void)handle.load()->read().notify();
  wait_for([&] { return runtime.stats().finished > finished; });
  TcpStream other = serving.connect();
  CHECK(ask(other, "second") == "second");
  CHECK(calls == 2);
  CHECK(ask(idle, "third") == "third");
}

FIBER_TEST_CASE(
    "an exception that a handler throws is reported and ends the connection, not the server") {
  std::atomic<int> told{0};
  FiberPool pool({.capacity = 2});
  for (const bool in_a_pool : {false, true}) {
    ServerOptions options{.on_exception = [&](const std::exception_ptr& thrown) {
      CHECK_THROWS_WITH_AS(std::rethrow_exception(thrown), "as it was asked to",
                           std::runtime_error);
      ++told;
    }};
    if (in_a_pool) options.run = net::in_pool(pool);
    Serving serving(std::move(options), answer_or_throw);
    // Tests the first request, and a request after an idle time.
    TcpStream first = serving.connect();
    CHECK(!first.write_all(bytes("t")).error);
    CHECK(has_ended(first));
    TcpStream second = serving.connect();
    CHECK(ask(second, "a") == "a");
    if (in_a_pool) pool.wait_idle();
    CHECK(!second.write_all(bytes("t")).error);
    CHECK(has_ended(second));
    TcpStream other = serving.connect();
    CHECK(ask(other, "b") == "b");
  }
  CHECK(told == 4);
}

FIBER_TEST_CASE("a server without on_exception continues after a handler throws an exception") {
  Serving serving({}, answer_or_throw);
  TcpStream stream = serving.connect();
  CHECK(!stream.write_all(bytes("t")).error);
  CHECK(has_ended(stream));
  TcpStream other = serving.connect();
  CHECK(ask(other, "b") == "b");
}

FIBER_TEST_CASE(
    "a request on an idle connection runs in a fiber with the server's stack size and name") {
  Serving serving({.stack_size = 512 * 1024, .name = "mail"}, [](Connection& connection) {
    CHECK(use_stack(128) == 128);
    CHECK(this_fiber::name() == "mail");
    return answer_one(connection);
  });
  const std::uint64_t finished = runtime.stats().finished;
  TcpStream stream = serving.connect();
  CHECK(ask(stream, "first") == "first");
  wait_for([&] { return runtime.stats().finished > finished; });  // The connection is idle.
  CHECK(ask(stream, "second") == "second");
}

FIBER_TEST_CASE(
    "an exception that ServerOptions::run throws ends the server after its connections have "
    "ended") {
  for (const bool when_idle : {false, true}) {
    std::atomic<bool> fails{false};
    FiberPool pool({.capacity = 2});
    const auto in_the_pool = net::in_pool(pool);
    const auto run = [&](detail::Task&& task) {
      if (fails) throw std::runtime_error("run");
      return in_the_pool(std::move(task));
    };
    Server server(answer_one, {.run = run, .grace = 1ms});
    TcpListener listener = listen_anywhere();
    const net::Address address = listener.local_address().value;
    auto running = spawn([&] { return server.serve(listener); });
    auto [stream, refused] = TcpStream::connect(address);
    CHECK(refused == std::error_code{});
    CHECK(ask(stream, "one") == "one");
    fails = true;
    TcpStream other;
    if (when_idle) {
      pool.wait_idle();
      CHECK(!stream.write_all(bytes("two")).error);
    } else {
      other = std::move(TcpStream::connect(address).value);
    }
    CHECK_THROWS_AS((void)running.join(), std::runtime_error);
    CHECK(server.stats().open == 0);
    CHECK(server.stats().refused == 1);
  }
}

TEST_SUITE_END();

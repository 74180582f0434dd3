#include <array>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/net/loopback.hpp"
#include "tests/support/death_test.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/parked.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using net::TcpListener;
using net::TcpStream;

TEST_SUITE_BEGIN("net/close");

FIBER_TEST_CASE("closing a stream ends a waiting read") {
  auto [client, server] = connected_pair();
  auto reader = spawn([&stream = client] {
    std::array<std::byte, 8> buffer;
    return stream.read_some(buffer).error;
  });
  await_parked(1);
  client.close();
  CHECK(reader.join() == Errc::closed);
}

FIBER_TEST_CASE("closing a stream ends a waiting read that has a deadline") {
  auto [client, server] = connected_pair();
  auto reader = spawn([&stream = client] {
    std::array<std::byte, 8> buffer;
    return stream.read_some(buffer, Deadline::after(1h)).error;
  });
  await_parked(1);
  client.close();
  CHECK(reader.join() == Errc::closed);
}

FIBER_TEST_CASE("closing a stream ends a waiting write") {
  auto [client, server] = connected_pair();
  shrink_buffers(client);
  auto writer = spawn([&stream = client] {
    const std::vector<std::byte> much(std::size_t{16} << 20);
    return stream.write_all(much).error;
  });
  await_parked(1);
  client.close();
  CHECK(writer.join() == Errc::closed);
}

FIBER_TEST_CASE("closing a listener ends a waiting accept") {
  TcpListener listener = listen_anywhere();
  auto acceptor = spawn([&] { return listener.accept().error; });
  await_parked(1);
  listener.close();
  CHECK(acceptor.join() == Errc::closed);
}

FIBER_TEST_CASE("closing a stream ends a read and a write that wait at the same time") {
  auto [client, server] = connected_pair();
  shrink_buffers(client);
  auto reader = spawn([&stream = client] {
    std::array<std::byte, 8> buffer;
    return stream.read_some(buffer).error;
  });
  auto writer = spawn([&stream = client] {
    const std::vector<std::byte> much(std::size_t{16} << 20);
    return stream.write_all(much).error;
  });
  await_parked(2);
  client.close();
  CHECK(reader.join() == Errc::closed);
  CHECK(writer.join() == Errc::closed);
}

FIBER_TEST_CASE("a closed stream stays closed and may be closed again") {
  auto [client, server] = connected_pair();
  client.close();
  client.close();
  std::array<std::byte, 8> buffer;
  CHECK(client.read_some(buffer).error == Errc::closed);
  CHECK(client.write_all(buffer).error == Errc::closed);
  CHECK(!client.is_open_hint());
  CHECK(server.read_some(buffer).error == Errc::end_of_stream);
  TcpListener listener = listen_anywhere();
  listener.close();
  listener.close();
  CHECK(listener.accept().error == Errc::closed);
  CHECK(listener.local_address().error == Errc::closed);
}

THREAD_TEST_CASE("a fiber's wait on a stream ends when a plain thread closes the stream") {
  auto [client, server] = connected_pair();
  auto reader = spawn([&stream = client] {
    std::array<std::byte, 8> buffer;
    return stream.read_some(buffer).error;
  });
  await_parked(1);
  client.close();
  CHECK(reader.join() == Errc::closed);
}

THREAD_TEST_CASE("a plain thread's wait on a stream ends when a fiber closes the stream") {
  auto [client, server] = connected_pair();
  auto closer = spawn([&stream = client] {
    this_fiber::sleep_for(1ms);
    stream.close();
  });
  std::array<std::byte, 8> buffer;
  CHECK(client.read_some(buffer).error == Errc::closed);
  closer.join();
}

FIBER_TEST_CASE(
    "closing a stream during a transfer does not affect the next stream with the same descriptor") {
  // Descriptor numbers and records of handles are reused at once: a late reader of a closed stream
  // must not take a byte of the next stream.
  const unsigned rounds = 2000 / kSlowdown;
  TcpListener listener = listen_anywhere();
  for (unsigned i = 0; i < rounds; ++i) {
    auto [client, server] = connect_to(listener);
    const auto mark = static_cast<std::byte>(i);
    auto late_reader = spawn([&stream = server] {
      std::array<std::byte, 8> buffer;
      while (!stream.read_some(buffer).error) {
      }
      return stream.read_some(buffer).error;
    });
    if (i % 2 == 0) CHECK(client.write_all(std::span(&mark, 1)).value == 1);
    if (i % 3 == 0) this_fiber::yield();
    server.close();

    auto [next_client, next_server] = connect_to(listener);
    CHECK(next_client.write_all(std::span(&mark, 1)).value == 1);
    std::array<std::byte, 8> buffer;
    CHECK(next_server.read_some(buffer).value == 1);
    CHECK(buffer[0] == mark);
    CHECK(late_reader.join() == Errc::closed);
  }
}

FIBER_TEST_CASE_WITH(
    "10 000 consecutive connections are all served even though events of earlier connections "
    "arrive late",
    {.workers = {1, 8}}) {
  const unsigned rounds = 10'000 / kSlowdown;
  TcpListener listener = listen_anywhere();
  for (unsigned i = 0; i < rounds; ++i) {
    auto [client, server] = connect_to(listener);
    CHECK(client.write_all(bytes("x")).value == 1);
    CHECK(read_text(server, 1) == "x");
    // The answer and the end of the stream arrive after the client's handle is destroyed.
    CHECK(server.write_all(bytes("yz")).value == 2);
  }
}

// The code from here on uses no CHECK: the process that must die has no test framework.
DEATH_TEST_CASE("two concurrent reads of one stream end the process",
                "two callers wait for the same direction of one descriptor") {
  run([] {
    TcpListener listener = TcpListener::listen(net::Address::loopback_v4(0)).value;
    TcpStream stream = TcpStream::connect(listener.local_address().value).value;
    const auto read = [&stream] {
      std::array<std::byte, 8> buffer;
      (void)stream.read_some(buffer);
    };
    auto first = spawn(read);
    auto second = spawn(read);
    first.join();
    second.join();
  });
}

DEATH_TEST_CASE("the process ends when a socket is destroyed after its runtime",
                "a socket outlives the runtime that it belongs to") {
  TcpListener listener;
  run([&] { listener = TcpListener::listen(net::Address::loopback_v4(0)).value; });
}

TEST_SUITE_END();

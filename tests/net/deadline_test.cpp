#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>

#include "tests/net/loopback.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/parked.hpp"
#include "tests/support/sim_test.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using net::TcpListener;
using net::TcpStream;

TEST_SUITE_BEGIN("net/deadline");

FIBER_TEST_CASE("a read that gets no data ends at its deadline, and the stream stays usable") {
  auto [client, server] = connected_pair();
  std::array<std::byte, 8> buffer;
  const Deadline deadline = Deadline::after(2ms);
  CHECK(client.read_some(buffer, deadline).error == Errc::timed_out);
  CHECK(deadline.passed());
  CHECK(client.read_exactly(buffer, Deadline::after(2ms)).error == Errc::timed_out);
  CHECK(server.write_all(bytes("here")).value == 4);
  CHECK(read_text(client, 4) == "here");
}

SIM_TEST_CASE(
    "an accept() to which no client connects ends at its deadline, and the listener stays usable") {
  TcpListener listener = listen_anywhere();
  const Deadline deadline = Deadline::after(24h);
  CHECK(listener.accept(deadline).error == Errc::timed_out);
  CHECK(deadline.passed());
  auto [client, server] = connect_to(listener);
  CHECK(client.is_open_hint());
}

FIBER_TEST_CASE(
    "a write to a peer that does not read ends at its deadline and returns the number of bytes "
    "written") {
  auto [client, server] = connected_pair();
  shrink_buffers(client);
  const std::vector<std::byte> much(std::size_t{16} << 20);
  const auto [count, error] = client.write_all(much, Deadline::after(5ms));
  CHECK(error == Errc::timed_out);
  CHECK(count > 0);
  CHECK(count < much.size());
  // There may be room again a moment later, because the system transfers buffered data at any time.
  std::size_t sent = count;
  std::error_code full;
  while (!full) {
    const auto [more, ended] = client.write_some(much, Deadline::after(1ms));
    sent += more;
    full = ended;
  }
  CHECK(full == Errc::timed_out);
  auto drain = spawn([&stream = server] {
    std::vector<std::byte> buffer(65'536);
    std::size_t total = 0;
    for (;;) {
      const auto [bytes_read, end] = stream.read_some(buffer);
      if (end) return total;
      total += bytes_read;
    }
  });
  // A reader makes room again.
  CHECK(client.write_all(std::span(much).first(100'000)).value == 100'000);
  client.close();
  CHECK(drain.join() == sent + 100'000);
}

SIM_TEST_CASE("connecting to a listener with a full backlog ends at the deadline") {
  TcpListener listener = listen_anywhere({.backlog = 0});
  std::vector<TcpStream> accepted_by_nobody;
  std::error_code error;
  while (!error && accepted_by_nobody.size() < 100) {
    auto [stream, failed] =
        TcpStream::connect(listener.local_address().value, Deadline::after(20s));
    error = failed;
    accepted_by_nobody.push_back(std::move(stream));
  }
  CHECK(error == Errc::timed_out);
}

FIBER_TEST_CASE("a network call whose deadline has already passed does not wait") {
  auto [client, server] = connected_pair();
  std::array<std::byte, 8> buffer;
  CHECK(client.read_some(buffer, Deadline::past()).error == Errc::timed_out);
  CHECK(client.write_some(bytes("goes out"), Deadline::past()).value == 8);
  CHECK(read_text(server, 8) == "goes out");
  TcpListener listener = listen_anywhere();
  CHECK(listener.accept(Deadline::past()).error == Errc::timed_out);
}

SIM_TEST_CASE(
    "every read of a stream fails once the read deadline has passed, until the deadline is "
    "removed") {
  auto [client, server] = connected_pair();
  std::array<std::byte, 8> buffer;
  client.set_read_deadline(Deadline::after(1h));
  CHECK(client.read_some(buffer).error == Errc::timed_out);
  CHECK(client.read_some(buffer, Deadline::after(24h)).error == Errc::timed_out);
  CHECK(server.write_all(bytes("waits")).value == 5);
  CHECK(client.read_some(buffer).error == Errc::timed_out);
  client.set_read_deadline(Deadline::never());
  CHECK(read_text(client, 5) == "waits");
}

FIBER_TEST_CASE("bytes that arrive after the deadline has passed are not lost") {
  auto [client, server] = connected_pair();
  std::array<std::byte, 64> buffer;
  // After a short read, the stream assumes that it is empty until the next edge.
  CHECK(server.write_all(bytes("one")).value == 3);
  CHECK(client.read_some(buffer).value == 3);
  for (int i = 0; i < 100; ++i) {
    client.set_read_deadline(Deadline::past());
    CHECK(server.write_all(bytes("two")).value == 3);
    CHECK(client.read_some(buffer).error == Errc::timed_out);
    CHECK(client.read_some(buffer).error == Errc::timed_out);
    client.set_read_deadline(Deadline::never());
    CHECK(read_text(client, 3) == "two");
    this_fiber::yield();
  }
}

FIBER_TEST_CASE("a deadline that another fiber sets ends a waiting read") {
  auto [client, server] = connected_pair();
  auto reader = spawn([&stream = client] {
    std::array<std::byte, 8> buffer;
    return stream.read_some(buffer).error;
  });
  await_parked(1);
  client.set_read_deadline(Deadline::after(1ms));
  CHECK(reader.join() == Errc::timed_out);

  auto second = spawn([&stream = client] {
    std::array<std::byte, 8> buffer;
    return stream.read_some(buffer).value;
  });
  CHECK(second.join() == 0);
}

SIM_TEST_CASE("a deadline that is extended before it passes does not end a read") {
  auto [client, server] = connected_pair();
  client.set_read_deadline(Deadline::after(1h));
  auto reader = spawn([&stream = client] { return read_text(stream, 4); });
  for (int i = 0; i < 100; ++i) {
    client.set_read_deadline(Deadline::after(1h + std::chrono::minutes(i)));
    this_fiber::sleep_for(59min);
  }
  CHECK(server.write_all(bytes("done")).value == 4);
  CHECK(reader.join() == "done");
}

FIBER_TEST_CASE("a stream's write deadline ends a waiting write") {
  auto [client, server] = connected_pair();
  shrink_buffers(client);
  auto writer = spawn([&stream = client] {
    const std::vector<std::byte> much(std::size_t{16} << 20);
    return stream.write_all(much).error;
  });
  await_parked(1);
  client.set_write_deadline(Deadline::after(1ms));
  CHECK(writer.join() == Errc::timed_out);
}

FIBER_TEST_CASE_WITH("no byte is lost when data and read deadlines coincide", {.workers = {1, 3}}) {
  // The reader's deadlines are about as long as the pauses of the writer, so that the clock and
  // the poller often compete for the same wait.
  const unsigned bytes = 2000 / kSlowdown;
  auto [client, server] = connected_pair();
  auto writer = spawn([&stream = server, bytes] {
    std::uint32_t state = 1;
    for (unsigned i = 0; i < bytes; ++i) {
      const auto byte = static_cast<std::byte>(i);
      CHECK(stream.write_all(std::span(&byte, 1)).value == 1);
      state = state * 1664525 + 1013904223;
      this_fiber::sleep_for(std::chrono::microseconds(state >> 24));
    }
  });
  unsigned received = 0;
  std::array<std::byte, 16> buffer;
  while (received < bytes) {
    const auto [count, error] =
        client.read_some(buffer, Deadline::after(std::chrono::microseconds(100)));
    if (error) {
      CHECK(error == Errc::timed_out);
      if (error != Errc::timed_out) break;
    }
    for (std::size_t i = 0; i < count; ++i) CHECK(buffer[i] == static_cast<std::byte>(received++));
  }
  writer.join();
}

TEST_SUITE_END();

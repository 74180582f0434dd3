#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <vector>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/net/loopback.hpp"
#include "tests/support/descriptor_limit.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/refusing_port.hpp"

using namespace std::chrono_literals;
using namespace weft;
using namespace weft::test;
using net::Address;
using net::TcpListener;
using net::TcpStream;

TEST_SUITE_BEGIN("net/tcp_stream");

FIBER_TEST_CASE("an echo server returns the bytes that it receives") {
  auto [client, server] = connected_pair();
  auto echoed = spawn([&stream = server] { return echo(stream); });
  for (const std::string& text :
       {std::string("a"), std::string("hello"), std::string(10'000, 'x')}) {
    CHECK(client.write_all(bytes(text)).value == text.size());
    CHECK(read_text(client, text.size()) == text);
  }
  CHECK(client.shutdown(net::Shutdown::write));
  CHECK(echoed.join() == 1 + 5 + 10'000);
}

FIBER_TEST_CASE("both ends of a connection report the same pair of addresses") {
  auto [client, server] = connected_pair();
  CHECK(client.local_address().value == server.peer_address().value);
  CHECK(client.peer_address().value == server.local_address().value);
}

// Serves `connections` connections, each in a fiber.
static void serve(TcpListener& listener, int connections) {
  WaitGroup served;
  for (int i = 0; i < connections; ++i) {
    auto [accepted, error] = listener.accept();
    CHECK(error == std::error_code{});
    served.add();
    go([stream = std::move(accepted), &served]() mutable {
      echo(stream);
      stream.close();
      served.done();
    });
  }
  served.wait();
}

FIBER_TEST_CASE("500 connections are served by one fiber each") {
  constexpr int kConnections = 500;
  constexpr int kMessages = 10;
  const DescriptorLimit limit(4096);
  TcpListener listener = listen_anywhere();
  const Address address = listener.local_address().value;
  auto server = spawn([&] { serve(listener, kConnections); });
  WaitGroup done;
  done.add(kConnections);
  for (int i = 0; i < kConnections; ++i) {
    go([&done, address, i] {
      auto [stream, error] = TcpStream::connect(address);
      CHECK(error == std::error_code{});
      for (int message = 0; message < kMessages; ++message) {
        const std::string text = std::to_string(i) + "/" + std::to_string(message);
        CHECK(stream.write_all(bytes(text)).error == std::error_code{});
        CHECK(read_text(stream, text.size()) == text);
      }
      stream.close();
      done.done();
    });
  }
  done.wait();
  server.join();
}

FIBER_TEST_CASE("a stream whose sending side was shut down can still be read") {
  auto [client, server] = connected_pair();
  CHECK(client.write_all(bytes("question")).value == 8);
  CHECK(client.shutdown(net::Shutdown::write));
  CHECK(read_text(server, 8) == "question");
  std::array<std::byte, 16> buffer;
  CHECK(server.read_some(buffer).error == Errc::end_of_stream);
  CHECK(server.read_some(buffer).error == Errc::end_of_stream);
  CHECK(server.write_all(bytes("answer")).value == 6);
  CHECK(read_text(client, 6) == "answer");
  CHECK(client.write_some(bytes("more")).error == std::errc::broken_pipe);
}

FIBER_TEST_CASE(
    "a read reports the end of the stream even if it comes immediately after the last bytes") {
  // The first read is short, which indicates an empty socket; the reader must still see the end.
  TcpListener listener = listen_anywhere();
  for (unsigned i = 0; i < 500 / kSlowdown; ++i) {
    auto [client, server] = connect_to(listener);
    auto reader = spawn([&stream = server] {
      std::array<std::byte, 64> buffer;
      std::size_t total = 0;
      for (;;) {
        const auto [count, error] = stream.read_some(buffer);
        if (error) {
          CHECK(error == Errc::end_of_stream);
          return total;
        }
        total += count;
      }
    });
    CHECK(client.write_all(bytes("last")).value == 4);
    client.close();
    CHECK(reader.join() == 4);
  }
}

FIBER_TEST_CASE("writing to a closed peer returns an error and raises no signal") {
  auto [client, server] = connected_pair();
  server.close();
  std::error_code error;
  // The first writes may still succeed, while the refusal is in transit.
  while (!error) error = client.write_some(bytes("is anybody there?")).error;
  CHECK((error == std::errc::broken_pipe || error == std::errc::connection_reset));
}

FIBER_TEST_CASE("a waiting read returns the error when the peer resets the connection") {
  auto [client, server] = connected_pair();
  auto reader = spawn([&stream = client] {
    std::array<std::byte, 16> buffer;
    return stream.read_some(buffer).error;
  });
  const linger at_once{1, 0};
  CHECK(::setsockopt(server.socket().descriptor(), SOL_SOCKET, SO_LINGER, &at_once,
                     sizeof at_once) == 0);
  server.close();
  CHECK(reader.join() == std::errc::connection_reset);
}

FIBER_TEST_CASE("connecting to a port without a listener is refused") {
  const RefusingPort port;
  CHECK(TcpStream::connect(port.address()).error == std::errc::connection_refused);
  CHECK(TcpStream::connect(port.address(), Deadline::after(std::chrono::hours(1))).error ==
        std::errc::connection_refused);
}

FIBER_TEST_CASE("reads and writes with empty buffers return at once") {
  auto [client, server] = connected_pair();
  CHECK(!client.read_some({}).error);
  CHECK(!client.read_exactly({}).error);
  CHECK(!client.write_some({}).error);
  CHECK(!client.write_all("").error);
}

FIBER_TEST_CASE("read_exactly() returns the number of bytes read if the stream ends early") {
  auto [client, server] = connected_pair();
  CHECK(server.write_all(bytes("half")).value == 4);
  server.close();
  std::array<std::byte, 8> buffer;
  const auto [count, error] = client.read_exactly(buffer);
  CHECK(count == 4);
  CHECK(error == Errc::end_of_stream);
}

FIBER_TEST_CASE("shutting down the reading side ends a waiting read") {
  auto [client, server] = connected_pair();
  Event has_read;
  auto reader = spawn([&stream = client, &has_read] {
    std::array<std::byte, 16> buffer;
    // The first read is short, so the second read waits before its first attempt.
    CHECK(stream.read_some(buffer).value == 1);
    has_read.set();
    return stream.read_some(buffer).error;
  });
  CHECK(server.write_all(bytes("x")).value == 1);
  has_read.wait();
  // The reader must see the end, whether it already waits or not.
  CHECK(client.shutdown(net::Shutdown::read));
  CHECK(reader.join() == Errc::end_of_stream);
}

FIBER_TEST_CASE("a stream that is default-constructed or moved from is closed") {
  TcpStream empty;
  std::array<std::byte, 1> buffer;
  CHECK(empty.read_some(buffer).error == Errc::closed);
  CHECK(empty.write_some(buffer).error == Errc::closed);
  CHECK(empty.shutdown(net::Shutdown::both) == Errc::closed);
  CHECK(empty.set_no_delay(true) == Errc::closed);
  CHECK(empty.local_address().error == Errc::closed);
  CHECK(empty.peer_address().error == Errc::closed);
  CHECK(!empty.is_open_hint());
  empty.set_read_deadline(Deadline::past());
  empty.close();

  auto [client, server] = connected_pair();
  empty = std::move(client);
  CHECK(empty.is_open_hint());
  CHECK(client.read_some(buffer).error == Errc::closed);
  CHECK(empty.write_all(bytes("still here")).value == 10);
  CHECK(read_text(server, 10) == "still here");
}

FIBER_TEST_CASE("streams disable Nagle's algorithm by default, and the option can be changed") {
  auto [client, server] = connected_pair();
  for (const TcpStream* stream : {&client, &server}) {
    int value = 0;
    socklen_t size = sizeof value;
    const int descriptor = stream->socket().descriptor();
    CHECK(::getsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &value, &size) == 0);
    CHECK(value != 0);
  }
  CHECK(client.set_no_delay(false));
}

// Returns random bytes, which tests send repeatedly. Their number is prime, so that tests detect
// lost, repeated or exchanged parts of a stream.
static std::vector<std::byte> make_noise(std::uint64_t state) {
  std::vector<std::byte> block(100'003);
  for (std::byte& byte : block) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    byte = static_cast<std::byte>(state >> 56);
  }
  return block;
}

static void send_noise(TcpStream& stream, std::span<const std::byte> noise, std::size_t size) {
  for (std::size_t sent = 0; sent < size;) {
    const auto part = noise.first(std::min(noise.size(), size - sent));
    CHECK(stream.write_all(part).value == part.size());
    sent += part.size();
  }
  CHECK(stream.shutdown(net::Shutdown::write));
}

// Returns how many bytes have arrived before the first wrong byte.
static std::size_t receive_noise(TcpStream& stream, std::span<const std::byte> noise) {
  std::vector<std::byte> block(16'384);
  std::size_t received = 0;
  for (;;) {
    const auto [count, error] = stream.read_some(block);
    if (error) {
      CHECK(error == Errc::end_of_stream);
      return received;
    }
    for (std::span<const std::byte> rest = std::span(block).first(count); !rest.empty();) {
      const auto wanted = noise.subspan(received % noise.size());
      const std::size_t part = std::min(wanted.size(), rest.size());
      if (std::memcmp(rest.data(), wanted.data(), part) != 0) {
        stream.close();  // Ends the sender.
        return received;
      }
      rest = rest.subspan(part);
      received += part;
    }
  }
}

FIBER_TEST_CASE_WITH("64 MiB pass through small buffers unchanged in both directions at once",
                     {.workers = {1, 8}}) {
  const std::size_t bytes = (std::size_t{64} << 20) / (kSlowdown * kSlowdown);
  const std::vector<std::byte> up = make_noise(1);
  const std::vector<std::byte> down = make_noise(2);
  auto [client, server] = connected_pair();
  // With smaller buffers, the kernel itself stalls for 200 ms at a time.
  shrink_buffers(client, 32'768);
  shrink_buffers(server, 32'768);
  auto up_sent = spawn([&, &stream = client] { send_noise(stream, up, bytes); });
  auto down_sent = spawn([&, &stream = server] { send_noise(stream, down, bytes); });
  auto up_received = spawn([&, &stream = server] { return receive_noise(stream, up); });
  CHECK(receive_noise(client, down) == bytes);
  CHECK(up_received.join() == bytes);
  up_sent.join();
  down_sent.join();
}

THREAD_TEST_CASE("plain threads and fibers exchange data over a connection") {
  TcpListener listener = listen_anywhere();
  auto server = spawn([&] { serve(listener, 1); });
  {
    auto [stream, error] = TcpStream::connect(listener.local_address().value);
    CHECK(error == std::error_code{});
    for (int i = 0; i < 100; ++i) {
      CHECK(stream.write_all(bytes("over there")).value == 10);
      CHECK(read_text(stream, 10) == "over there");
    }
    std::array<std::byte, 1> buffer;
    CHECK(stream.read_some(buffer, Deadline::after(std::chrono::milliseconds(1))).error ==
          Errc::timed_out);
  }
  server.join();
}

TEST_CASE("network calls without a runtime return an error") {
  CHECK(TcpStream::connect(Address::loopback_v4(1)).error == Errc::no_runtime);
  CHECK(TcpListener::listen(Address::loopback_v4(0)).error == Errc::no_runtime);
}

FIBER_TEST_CASE_WITH("a fiber that reads without ever waiting lets other fibers run",
                     {.workers = {1}, .monitored = true}) {
  auto [client, server] = connected_pair();
  // A separate thread keeps the stream full, and the reader takes one byte at a time. There are
  // always more bytes, so the reader never has to wait.
  std::atomic<bool> other_ran{false};
  std::atomic<bool> all_written{false};
  std::thread writer([&, &from = client] {
    const std::vector<std::byte> much(10'000);
    while (!other_ran.load()) CHECK(!from.write_all(much).error);
    all_written.store(true);
  });
  std::array<std::byte, 1> buffer;
  CHECK(server.read_some(buffer).value == 1);
  go([&] { other_ran.store(true); });
  std::vector<std::byte> rest(10'000);
  // If the stream was empty once, the other fiber has run, and the writer may stop without a byte.
  while (!other_ran.load()) (void)server.read_some(buffer, Deadline::after(10ms));
  while (!all_written.load()) (void)server.read_some(rest, Deadline::after(1ms));
  writer.join();
}

FIBER_TEST_CASE(
    "a read whose deadline has passed returns available bytes, even after a short read") {
  auto [client, server] = connected_pair();
  std::array<std::byte, 64> buffer;
  for (int i = 0; i < 100; ++i) {
    CHECK(client.write_all(bytes("x")).value == 1);
    CHECK(server.read_some(buffer).value == 1);
    CHECK(client.write_all(bytes("12345")).value == 5);
    // The bytes may arrive a moment later. weft has not polled the kernel yet.
    for (int there = 0; there < 5;) {
      CHECK(::ioctl(server.native_handle(), FIONREAD, &there) == 0);
      std::this_thread::yield();
    }
    CHECK(server.read_some(buffer, Deadline::past()).value == 5);
    CHECK(server.read_some(buffer, Deadline::past()).error == Errc::timed_out);
  }
}

FIBER_TEST_CASE("a read returns the bytes after urgent data, even after a short read") {
  // The system ends a read at urgent data, and reports the bytes after it by no further event.
  auto [client, server] = connected_pair();
  for (int i = 0; i < 20; ++i) {
    const int sender = client.native_handle();
    CHECK(::send(sender, "abc", 3, 0) == 3);
    CHECK(::send(sender, "!", 1, MSG_OOB) == 1);
    CHECK(::send(sender, "def", 3, 0) == 3);
    this_fiber::sleep_for(1ms);  // Usually all events have come by the first read.
    CHECK(read_text(server, 6) == "abcdef");
  }
}

FIBER_TEST_CASE("wait_readable() consumes no byte") {
  auto [client, server] = connected_pair();
  std::array<std::byte, 64> buffer;
  CHECK(server.wait_readable(Deadline::past()) == Errc::timed_out);
  CHECK(server.wait_readable(Deadline::after(1ms)) == Errc::timed_out);
  for (int i = 0; i < 20; ++i) {
    auto waiter = spawn([&stream = server] { return stream.wait_readable(); });
    CHECK(client.write_all(bytes("12345")).value == 5);
    CHECK(waiter.join() == std::error_code{});
    CHECK(server.wait_readable(Deadline::past()) == std::error_code{});
    CHECK(server.read_some(buffer).value == 5);
  }
  client.close();
  CHECK(server.wait_readable() == std::error_code{});
  CHECK(server.read_some(buffer).error == Errc::end_of_stream);
}

FIBER_TEST_CASE("a stream adopts a socket and releases the socket without closing it") {
  auto [client, server] = connected_pair();
  const int descriptor = server.native_handle();
  CHECK(TcpStream::adopt(descriptor).error == Errc::already_watched);
  CHECK(server.release() == descriptor);
  CHECK(server.native_handle() == -1);
  CHECK(server.release() == -1);
  CHECK(::write(descriptor, "raw", 3) == 3);
  CHECK(read_text(client, 3) == "raw");
  auto [again, error] = TcpStream::adopt(descriptor);
  CHECK(error == std::error_code{});
  CHECK(client.write_all(bytes("back")).value == 4);
  CHECK(read_text(again, 4) == "back");
  CHECK(TcpStream::adopt(-1).error == std::errc::bad_file_descriptor);
}

TEST_SUITE_END();

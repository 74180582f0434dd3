#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>
#include <weft/context.hpp>
#include <weft/descriptor.hpp>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>

#include "tests/net/loopback.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/parked.hpp"
#include "tests/support/random.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using net::TcpListener;
using net::TcpStream;

TEST_SUITE_BEGIN("net/cancel");

FIBER_TEST_CASE("a stop request ends every waiting call on a stream, and the stream stays usable") {
  auto [client, server] = connected_pair();
  TcpListener listener = listen_anywhere();
  std::stop_source source;
  const std::stop_token token = source.get_token();
  shrink_buffers(client);
  shrink_buffers(server);
  auto read = spawn([&client = client, &token] {
    std::array<std::byte, 8> buffer;
    return client.read_some(buffer, token).error;
  });
  auto write = spawn([&client = client, &token] {
    const std::vector<std::byte> much(16 << 20);
    const auto [count, error] = client.write_all(much, {Deadline::after(1h), token});
    CHECK(count < much.size());
    return error;
  });
  auto accept = spawn([&] { return listener.accept(token).error; });
  await_parked(3);
  source.request_stop();
  CHECK(read.join() == Errc::cancelled);
  CHECK(write.join() == Errc::cancelled);
  CHECK(accept.join() == std::errc::operation_canceled);

  CHECK(server.write_all(bytes("here")).value == 4);
  CHECK(read_text(client, 4) == "here");
  auto [other_client, other_server] = connect_to(listener);
  CHECK(other_client.is_open_hint());
}

FIBER_TEST_CASE(
    "cancelling the caller's context ends network calls that have no deadline or stop token") {
  auto [client, server] = connected_pair();
  TcpListener listener = listen_anywhere();
  Context context;
  auto read = spawn([&client = client, &context] {
    const ContextScope scope(context);
    std::array<std::byte, 8> buffer;
    return client.read_some(buffer).error;
  });
  auto accept = spawn([&] {
    const ContextScope scope(context);
    return listener.accept().error;
  });
  await_parked(2);
  context.cancel();
  CHECK(read.join() == Errc::cancelled);
  CHECK(accept.join() == Errc::cancelled);

  const ContextScope scope(context);
  CHECK(server.write_all("here").value == 4);
  std::array<std::byte, 4> buffer;
  CHECK(client.read_exactly(buffer, Until::never()).value == 4);
  CHECK(client.wait_readable() == Errc::cancelled);
}

FIBER_TEST_CASE(
    "a stop request ends readiness waits, scattered reads, gathered writes and file transfers") {
  auto [client, server] = connected_pair();
  auto [other_client, other_server] = connected_pair();
  for (net::ByteStream* stream : {&client, &server, &other_client, &other_server}) {
    shrink_buffers(*stream);
  }
  const std::vector<std::byte> much(16 << 20);
  const Descriptor file(::memfd_create("sent", MFD_CLOEXEC));
  CHECK(::ftruncate(file.get(), static_cast<off_t>(much.size())) == 0);
  std::stop_source source;
  const std::stop_token token = source.get_token();
  auto read = spawn([&stream = client, &token] {
    std::array<std::byte, 8> buffer;
    const std::array<std::span<std::byte>, 1> buffers{buffer};
    return stream.read_scattered(buffers, token).error;
  });
  auto write = spawn([&stream = client, &token, &much] {
    const std::array<std::span<const std::byte>, 2> pieces{much, much};
    return stream.write_gathered(pieces, token).error;
  });
  auto wait = spawn([&stream = other_client, &token] { return stream.wait_readable(token); });
  auto send = spawn([&stream = other_client, &token, &file, size = much.size()] {
    return stream.send_file(file.get(), 0, size, token).error;
  });
  await_parked(4);
  source.request_stop();
  CHECK(read.join() == Errc::cancelled);
  CHECK(write.join() == Errc::cancelled);
  CHECK(wait.join() == Errc::cancelled);
  CHECK(send.join() == Errc::cancelled);
}

FIBER_TEST_CASE("a network call with a cancelled context fails only when the call has to wait") {
  auto [client, server] = connected_pair();
  Context context;
  context.cancel();
  std::array<std::byte, 4> buffer;
  for (int i = 0; i < 3; ++i) CHECK(client.read_some(buffer, context).error == Errc::cancelled);
  CHECK(server.write_all(bytes("here"), context).value == 4);
  CHECK(read_text(client, 0).empty());
  // The text has arrived already, or arrives during a wait without a limit.
  CHECK(client.read_exactly(buffer).value == 4);
}

FIBER_TEST_CASE("a wait reports a timeout when its deadline passes before its stop request") {
  auto [client, server] = connected_pair();
  const std::stop_source source;
  const std::stop_token token = source.get_token();
  std::array<std::byte, 4> buffer;
  CHECK(client.read_some(buffer, {Deadline::after(2ms), token}).error == Errc::timed_out);
  CHECK(server.is_open_hint());
}

THREAD_TEST_CASE("a stop request from a fiber ends a plain thread's network call") {
  auto [client, server] = connected_pair();
  std::stop_source source;
  const std::stop_token token = source.get_token();
  go([&] { source.request_stop(); });
  std::array<std::byte, 4> buffer;
  CHECK(client.read_some(buffer, token).error == Errc::cancelled);
  CHECK(server.is_open_hint());
}

FIBER_TEST_CASE("no byte is lost when data, deadlines and stop requests coincide") {
  auto [client, server] = connected_pair();
  const int rounds = static_cast<int>(2000 / kSlowdown);
  auto writer = spawn([&server = server, rounds] {
    for (int i = 0; i < rounds; ++i) {
      const std::byte one{static_cast<unsigned char>(i)};
      CHECK(server.write_all(std::span(&one, 1)).value == 1);
      if (i % 7 == 0) this_fiber::yield();
    }
  });
  Random random;
  for (int i = 0; i < rounds;) {
    std::stop_source source;
    const std::stop_token token = source.get_token();
    auto stopper = spawn([&] { source.request_stop(); });
    std::byte byte{};
    const auto limit = Deadline::after(std::chrono::nanoseconds(random.below(2000)));
    const auto [count, error] = client.read_some(std::span(&byte, 1), {limit, token});
    if (!error) CHECK(byte == std::byte{static_cast<unsigned char>(i)});
    i += static_cast<int>(count);
    stopper.join();
  }
  writer.join();
}

TEST_SUITE_END();

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <limits>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>
#include <weft/descriptor.hpp>
#include <weft/go.hpp>
#include <weft/net/unix_stream.hpp>

#include "tests/net/loopback.hpp"
#include "tests/support/fiber_test.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using net::TcpStream;

TEST_SUITE_BEGIN("net/options");

namespace {

int option(const TcpStream& stream, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  CHECK(::getsockopt(stream.native_handle(), level, name, &value, &size) == 0);
  return value;
}

}  // namespace

FIBER_TEST_CASE("getsockopt() returns each socket option that was set") {
  auto pair = connected_pair();
  TcpStream& stream = pair.client;
  CHECK(stream.set_keep_alive(net::KeepAlive{.idle = 30s, .interval = 5s, .probes = 3}));
  CHECK(option(stream, SOL_SOCKET, SO_KEEPALIVE) == 1);
  CHECK(option(stream, IPPROTO_TCP, TCP_KEEPIDLE) == 30);
  CHECK(option(stream, IPPROTO_TCP, TCP_KEEPINTVL) == 5);
  CHECK(option(stream, IPPROTO_TCP, TCP_KEEPCNT) == 3);
  CHECK(stream.set_keep_alive(std::nullopt));
  CHECK(option(stream, SOL_SOCKET, SO_KEEPALIVE) == 0);
  CHECK(stream.set_keep_alive(net::KeepAlive{.idle = 0s}) == std::errc::invalid_argument);
  CHECK(stream.set_user_timeout(1500ms));
  CHECK(option(stream, IPPROTO_TCP, TCP_USER_TIMEOUT) == 1500);
  // A time that exceeds the system's range must not be truncated to a short time.
  const long long beyond = (1LL << 32) + 5;
  CHECK(stream.set_user_timeout(std::chrono::milliseconds(beyond)));
  CHECK(option(stream, IPPROTO_TCP, TCP_USER_TIMEOUT) == std::numeric_limits<int>::max());
  for (const auto time : {std::chrono::seconds(beyond), std::chrono::seconds(-beyond)}) {
    CHECK(stream.set_keep_alive(net::KeepAlive{.idle = time}) == std::errc::invalid_argument);
    CHECK(stream.set_keep_alive(net::KeepAlive{.interval = time}) == std::errc::invalid_argument);
  }
  CHECK(stream.set_no_delay(false));
  CHECK(option(stream, IPPROTO_TCP, TCP_NODELAY) == 0);
  CHECK(stream.set_send_buffer(20'000));
  CHECK(option(stream, SOL_SOCKET, SO_SNDBUF) == 40'000);
  CHECK(stream.set_receive_buffer(30'000));
  CHECK(option(stream, SOL_SOCKET, SO_RCVBUF) == 60'000);
  stream.close();
  CHECK(stream.set_user_timeout(1s) == Errc::closed);
}

FIBER_TEST_CASE("closing a stream resets the connection only when reset-on-close is set") {
  for (const bool resets : {false, true}) {
    auto pair = connected_pair();
    CHECK(pair.server.set_reset_on_close(resets));
    pair.server.close();
    std::array<std::byte, 4> buffer;
    const std::error_code error = pair.client.read_some(buffer).error;
    CHECK((resets ? error == std::errc::connection_reset : error == Errc::end_of_stream));
  }
}

FIBER_TEST_CASE("a connection uses the requested local address, even with TCP fast open") {
  for (const bool fast_open : {false, true}) {
    net::TcpListener listener = listen_anywhere({.fast_open_queue = fast_open ? 16 : 0});
    const auto local = net::Address::parse("127.0.0.2:0").value;
    for (int round = 0; round < 3; ++round) {
      auto [client, refused] = TcpStream::connect(listener.local_address().value,
                                                  {.local = local, .fast_open = fast_open});
      CHECK(refused == std::error_code{});
      CHECK(!client.write_all(bytes("hello")).error);
      auto [server, failed] = listener.accept();
      CHECK(failed == std::error_code{});
      CHECK(server.peer_address().value.with_port(0) == local);
      CHECK(read_text(server, 5) == "hello");
      CHECK(!server.write_all(bytes("there")).error);
      CHECK(read_text(client, 5) == "there");
    }
  }
}

FIBER_TEST_CASE("gathered writes arrive in order and can be read into scattered buffers") {
  auto pair = connected_pair();
  // With smaller buffers, the kernel itself stalls for 200 ms at a time.
  shrink_buffers(pair.client, 32'768);
  shrink_buffers(pair.server, 32'768);
  std::vector<std::string> texts;
  std::vector<std::span<const std::byte>> pieces;
  std::string all;
  for (std::size_t i = 0; i < 150; ++i)
    texts.emplace_back(i * 113 % 7001, static_cast<char>('a' + i % 26));
  for (const std::string& text : texts) {
    pieces.push_back(bytes(text));
    all += text;
  }
  auto writer = spawn([&] {
    const auto written = pair.client.write_gathered(pieces);
    CHECK(pair.client.shutdown(net::Shutdown::write));
    return written.value;
  });
  std::string received;
  std::array<std::byte, 10> first;
  std::array<std::byte, 3000> second;
  const std::array<std::span<std::byte>, 3> buffers{first, std::span<std::byte>(), second};
  for (;;) {
    const auto [count, ended] = pair.server.read_scattered(buffers);
    if (ended) {
      CHECK(ended == Errc::end_of_stream);
      break;
    }
    const std::size_t begin = std::min(count, first.size());
    received.append(reinterpret_cast<const char*>(first.data()), begin);
    received.append(reinterpret_cast<const char*>(second.data()), count - begin);
  }
  CHECK(writer.join() == all.size());
  CHECK(received == all);
  CHECK(pair.client.write_gathered({}).value == 0);
  CHECK(pair.client.read_scattered({}).value == 0);
}

FIBER_TEST_CASE("a gathered write that times out returns the number of bytes written") {
  auto pair = connected_pair();
  shrink_buffers(pair.client, 32'768);
  shrink_buffers(pair.server, 32'768);
  const std::vector<std::byte> much(1'000'000);
  const std::array<std::span<const std::byte>, 2> pieces{std::span(much).first(10), much};
  const auto [count, error] = pair.client.write_gathered(pieces, Deadline::after(2ms));
  CHECK(error == Errc::timed_out);
  CHECK(count > 10);
  CHECK(count < much.size());
  pair.client.close();
  std::vector<std::byte> buffer(much.size());
  CHECK(pair.server.read_exactly(buffer).value == count);
}

FIBER_TEST_CASE("a scattered read that times out consumes no bytes") {
  auto pair = connected_pair();
  std::array<std::byte, 3> first;
  std::array<std::byte, 5> second;
  const std::array<std::span<std::byte>, 2> buffers{first, second};
  const auto [none, late] = pair.client.read_scattered(buffers, Deadline::after(2ms));
  CHECK(late == Errc::timed_out);
  CHECK(none == 0);
  CHECK(pair.server.write_all(bytes("here")).value == 4);
  CHECK(pair.client.read_scattered(buffers).value == 4);
  pair.client.set_read_deadline(Deadline::after(1ms));
  CHECK(pair.client.read_scattered(buffers).error == Errc::timed_out);
}

FIBER_TEST_CASE("a file is sent over a connection from a given offset to the end of the file") {
  std::string text(2'000'000, ' ');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i * 7 % 25);
  const Descriptor file(::memfd_create("sent", MFD_CLOEXEC));
  CHECK(::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  auto [client, server] = connected_pair();
  auto sending = spawn([&text, &server = server, descriptor = file.get()] {
    CHECK(server.send_file(descriptor, 0, text.size()).value == text.size());
    CHECK(server.send_file(descriptor, 1'000, 10).value == 10);
    const auto beyond = server.send_file(descriptor, text.size() - 5, 10);
    CHECK(beyond.value == 5);
    CHECK(beyond.error == Errc::end_of_stream);
    CHECK(server.send_file(-1, 0, 1).error == std::errc::bad_file_descriptor);
  });
  std::string received(text.size() + 15, '\0');
  CHECK(client.read_exactly(std::as_writable_bytes(std::span(received))).value == received.size());
  sending.join();
  CHECK(received == text + text.substr(1'000, 10) + text.substr(text.size() - 5));
  // The peer stops reading: a limit, a close and a broken connection end the send, without a
  // signal.
  const auto send = [&, &stream = server](const Until& until = {}) {
    return stream.send_file(file.get(), 0, text.size(), until).error;
  };
  std::error_code ended;
  while (!ended) ended = send(Deadline::after(2ms));
  CHECK(ended == Errc::timed_out);
  CHECK(client.set_reset_on_close(true));
  client.close();
  do {
    ended = send();
  } while (!ended);
  CHECK((ended == std::errc::connection_reset || ended == std::errc::broken_pipe));
  CHECK(send() == std::errc::broken_pipe);
  server.close();
  CHECK(send() == Errc::closed);
}

THREAD_TEST_CASE("gather writes, file transfers and scatter reads work on a plain thread") {
  auto [ends, refused] = net::UnixStream::pair();
  CHECK(refused == std::error_code{});
  const std::string text(1'000'000, 't');
  const Descriptor file(::memfd_create("sent", MFD_CLOEXEC));
  CHECK(::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  std::thread sender([&text, &file, &client = ends.first] {
    const std::array<std::span<const std::byte>, 2> pieces{bytes(text), bytes(text)};
    CHECK(client.write_gathered(pieces).value == 2 * text.size());
    CHECK(client.send_file(file.get(), 0, text.size()).value == text.size());
    CHECK(client.shutdown(net::Shutdown::write));
  });
  std::array<std::byte, 10> first;
  std::array<std::byte, 3000> second;
  const std::array<std::span<std::byte>, 2> buffers{first, second};
  std::size_t total = 0;
  std::error_code ended;
  while (!ended) {
    const auto [count, error] = ends.second.read_scattered(buffers);
    total += count;
    ended = error;
  }
  CHECK(ended == Errc::end_of_stream);
  CHECK(total == 3 * text.size());
  sender.join();
  // Limits also end these calls.
  auto [silent, failed] = net::UnixStream::pair();
  CHECK(failed == std::error_code{});
  CHECK(silent.first.read_scattered(buffers, Deadline::after(1ms)).error == Errc::timed_out);
  std::stop_source stop;
  go([stop]() mutable { (void)stop.request_stop(); });
  CHECK(silent.first.read_scattered(buffers, stop.get_token()).error == Errc::cancelled);
  const std::array<std::span<const std::byte>, 2> pieces{bytes(text), bytes(text)};
  CHECK(silent.first.write_gathered(pieces, Deadline::after(1ms)).error == Errc::timed_out);
  CHECK(silent.first.write_gathered(pieces, stop.get_token()).error == Errc::cancelled);
  CHECK(silent.first.send_file(file.get(), 0, 1'000, Deadline::past()).error == Errc::timed_out);
  CHECK(silent.first.send_file(file.get(), 0, 1'000, stop.get_token()).error == Errc::cancelled);
}

TEST_SUITE_END();

#include <weft/net/unix_stream.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>
#include <weft/go.hpp>
#include <weft/io.hpp>
#include <weft/net/select.hpp>
#include <weft/net/unix_listener.hpp>
#include <weft/select.hpp>

#include "tests/net/loopback.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/parked.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using net::UnixAddress;
using net::UnixListener;
using net::UnixStream;

TEST_SUITE_BEGIN("net/unix");

namespace {

// Makes a folder for the test's socket files.
class Folder {
 public:
  Folder() { REQUIRE(::mkdtemp(path_.data()) != nullptr); }
  ~Folder() {
    (void)std::remove(socket().name().data());
    ::rmdir(path_.c_str());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] UnixAddress socket() const { return UnixAddress::path(path_ + "/socket").value; }

 private:
  std::string path_ = "/tmp/weft_unix_XXXXXX";
};

UnixListener listen_on(const UnixAddress& address, const net::UnixListenOptions& options = {}) {
  auto [listener, error] = UnixListener::listen(address, options);
  CHECK(error == std::error_code{});
  return std::move(listener);
}

net::UnixStreamPair make_pair() {
  auto [pair, error] = UnixStream::pair();
  CHECK(error == std::error_code{});
  return std::move(pair);
}

// Writes until the kernel has no room for another byte; returns the number of bytes.
std::size_t fill(UnixStream& stream) {
  const std::vector<std::byte> piece(4096);
  std::size_t count = 0;
  for (std::size_t size = piece.size(); size > 0; size /= 2) {
    while (stream.write_all(std::span(piece).first(size), Deadline::past()).value == size) {
      count += size;
    }
  }
  return count;
}

}  // namespace

TEST_CASE("a Unix address is a path, an abstract name, or unnamed") {
  CHECK(UnixAddress().is_unnamed());
  CHECK(UnixAddress().to_string().empty());
  const UnixAddress path = UnixAddress::path("/run/x").value;
  CHECK(path.name() == "/run/x");
  CHECK(!path.is_abstract());
  CHECK(UnixAddress::from_system(path.system_data(), path.system_size()).value == path);
  const UnixAddress hidden = UnixAddress::abstract(std::string_view("a\0b", 3)).value;
  CHECK(hidden.is_abstract());
  CHECK(hidden.to_string() == std::string("@a\0b", 4));
  CHECK(UnixAddress::from_system(hidden.system_data(), hidden.system_size()).value == hidden);
  CHECK(!(hidden == path));
  const std::string longest(107, 'p');
  const UnixAddress full = UnixAddress::path(longest).value;
  CHECK(UnixAddress::from_system(full.system_data(), full.system_size()).value == full);
  CHECK(UnixAddress::path(longest + "p").error == std::errc::filename_too_long);
  CHECK(UnixAddress::abstract(longest + "p").error == std::errc::filename_too_long);
  CHECK(UnixAddress::path("").error == std::errc::invalid_argument);
  CHECK(UnixAddress::path(std::string_view("a\0b", 3)).error == std::errc::invalid_argument);
}

FIBER_TEST_CASE(
    "a Unix connection to a path or an abstract name transfers bytes and reports the peer's "
    "credentials") {
  const Folder folder;
  for (const UnixAddress& address : {folder.socket(), UnixAddress()}) {
    UnixListener listener = listen_on(address);
    auto accepting = spawn([&] { return listener.accept(); });
    auto [client, refused] = UnixStream::connect(listener.local_address().value);
    CHECK(refused == std::error_code{});
    auto [server, failed] = accepting.join();
    CHECK(failed == std::error_code{});
    for (UnixStream* end : {&client, &server}) {
      const auto [peer, unknown] = end->peer_credentials();
      CHECK(unknown == std::error_code{});
      CHECK(peer.process == ::getpid());
      CHECK(peer.user == ::getuid());
    }
    CHECK(client.peer_address().value == listener.local_address().value);
    const std::string sent(300'000, 'u');
    auto writer = spawn([&from = client, &sent] {
      CHECK(!from.write_all(bytes(sent)).error);
      CHECK(from.shutdown(net::Shutdown::write));
    });
    CHECK(read_text(server, sent.size()) == sent);
    writer.join();
    std::array<std::byte, 4> rest;
    CHECK(server.read_some(rest).error == Errc::end_of_stream);
  }
}

FIBER_TEST_CASE(
    "a Unix listener replaces a stale socket file, but not the socket file of a running server") {
  const Folder folder;
  { const UnixListener dead = listen_on(folder.socket()); }
  CHECK(UnixStream::connect(folder.socket()).error == std::errc::connection_refused);
  CHECK(UnixListener::listen(folder.socket(), {.replace_stale = false}).error ==
        std::errc::address_in_use);
  const UnixListener living = listen_on(folder.socket());
  CHECK(UnixListener::listen(folder.socket()).error == std::errc::address_in_use);
}

FIBER_TEST_CASE(
    "connecting to a Unix listener with a full backlog waits until a deadline or a stop request") {
  UnixListener listener = listen_on(UnixAddress(), {.backlog = 0});
  const UnixAddress address = listener.local_address().value;
  const UnixStream first = UnixStream::connect(address).value;
  CHECK(UnixStream::connect(address, Deadline::after(5ms)).error == Errc::timed_out);
  std::stop_source stop;
  auto stopped =
      spawn([&, token = stop.get_token()] { return UnixStream::connect(address, token).error; });
  auto patient = spawn([&] { return UnixStream::connect(address).error; });
  await_parked(2);
  (void)stop.request_stop();
  CHECK(stopped.join() == Errc::cancelled);
  CHECK(!listener.accept().error);
  CHECK(patient.join() == std::error_code{});
}

FIBER_TEST_CASE(
    "passed descriptors arrive with their bytes, and an ordinary read discards only the "
    "descriptors") {
  auto pair = make_pair();
  auto [pipe, failed] = io::make_pipe();
  REQUIRE(failed == std::error_code{});
  const int ends[] = {pipe.write.native_handle(), pipe.read.native_handle()};
  auto receiving = spawn([&] {
    std::array<std::byte, 16> buffer;
    return pair.second.receive_descriptors(buffer);
  });
  CHECK(pair.first.send_descriptors(bytes("take"), ends).value == 4);
  auto [received, error] = receiving.join();
  CHECK(error == std::error_code{});
  CHECK(received.size == 4);
  REQUIRE(received.descriptors.size() == 2);
  CHECK((::fcntl(received.descriptors[0].get(), F_GETFD) & FD_CLOEXEC) != 0);
  // The copy is an end of the same pipe.
  CHECK(::write(received.descriptors[0].get(), "x", 1) == 1);
  std::array<std::byte, 4> buffer;
  CHECK(io::read_some(pipe.read, buffer).value == 1);
  // An ordinary read ends at the descriptors and so is short; the reader still gets the bytes after
  // them.
  CHECK(!pair.first.write_all(bytes("ab")).error);
  CHECK(pair.first.send_descriptors(bytes("cd"), ends).value == 2);
  CHECK(!pair.first.write_all(bytes("ef")).error);
  CHECK(read_text(pair.second, 6) == "abcdef");
  CHECK(pair.first.send_descriptors({}, ends).error == std::errc::invalid_argument);
  CHECK(pair.first.send_descriptors(bytes("x"), std::vector<int>(65)).error ==
        std::errc::invalid_argument);
  CHECK(pair.first.send_descriptors(bytes("x"), {}).value == 1);
  CHECK(pair.second.receive_descriptors(buffer).value.descriptors.empty());
  pair.first.close();
  CHECK(pair.second.receive_descriptors(buffer).error == Errc::end_of_stream);
}

FIBER_TEST_CASE(
    "send_descriptors() sends nothing when a deadline or a stop request ends its wait") {
  auto pair = make_pair();
  auto [pipe, failed] = io::make_pipe();
  REQUIRE(failed == std::error_code{});
  const int ends[] = {pipe.write.native_handle()};
  const std::size_t filled = fill(pair.first);
  CHECK(pair.first.send_descriptors(bytes("x"), ends, Deadline::after(2ms)).error ==
        Errc::timed_out);
  std::stop_source stop;
  auto stopped = spawn([&, token = stop.get_token()] {
    return pair.first.send_descriptors(bytes("x"), ends, token).error;
  });
  await_parked(1);
  (void)stop.request_stop();
  CHECK(stopped.join() == Errc::cancelled);
  auto patient = spawn([&] { return pair.first.send_descriptors(bytes("last"), ends).value; });
  await_parked(1);
  CHECK(read_text(pair.second, filled).size() == filled);
  std::array<std::byte, 8> buffer;
  const auto [received, error] = pair.second.receive_descriptors(buffer);
  CHECK(error == std::error_code{});
  CHECK(received.size == 4);
  CHECK(received.descriptors.size() == 1);
  CHECK(patient.join() == 4);
  // The sends whose deadline passed have sent nothing.
  CHECK(pair.second.receive_descriptors(buffer, Deadline::after(1ms)).error == Errc::timed_out);
}

FIBER_TEST_CASE(
    "a deadline, a stop request or close() ends a wait on a Unix socket, and a select can wait for "
    "the socket") {
  auto pair = make_pair();
  std::array<std::byte, 8> buffer;
  CHECK(pair.first.read_some(buffer, Deadline::after(1ms)).error == Errc::timed_out);
  CHECK(pair.first.receive_descriptors(buffer, Deadline::past()).error == Errc::timed_out);
  std::stop_source stop;
  auto stopped = spawn([&, token = stop.get_token()] {
    return pair.first.receive_descriptors(buffer, token).error;
  });
  await_parked(1);
  (void)stop.request_stop();
  CHECK(stopped.join() == Errc::cancelled);
  CHECK(select(net::on_readable(pair.first), otherwise()) == 1);
  CHECK(select(net::on_writable(pair.first)) == 0);
  CHECK(!pair.second.write_all(bytes("x")).error);
  CHECK(select(net::on_readable(pair.first)) == 0);
  CHECK(read_text(pair.first, 1) == "x");
  auto closed = spawn([&] { return pair.first.receive_descriptors(buffer).error; });
  await_parked(1);
  pair.first.close();
  CHECK(closed.join() == Errc::closed);
}

THREAD_TEST_CASE("plain threads connect, read and write over Unix sockets") {
  UnixListener listener = listen_on(UnixAddress());
  std::thread server([&] {
    auto [stream, error] = listener.accept();
    CHECK(error == std::error_code{});
    CHECK(echo(stream) == 5);
  });
  auto [stream, error] = UnixStream::connect(listener.local_address().value);
  CHECK(error == std::error_code{});
  CHECK(!stream.write_all(bytes("plain")).error);
  CHECK(read_text(stream, 5) == "plain");
  stream.close();
  server.join();
  // Tests also a pair that other code has made.
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  auto [ours, refused] = UnixStream::adopt(ends[0]);
  CHECK(refused == std::error_code{});
  CHECK(::write(ends[1], "z", 1) == 1);
  CHECK(read_text(ours, 1) == "z");
  ::close(ends[1]);
}

THREAD_TEST_CASE(
    "plain threads pass descriptors over Unix sockets with deadlines and stop tokens") {
  auto pair = make_pair();
  auto [pipe, failed] = io::make_pipe();
  REQUIRE(failed == std::error_code{});
  const int ends[] = {pipe.write.native_handle()};
  std::array<std::byte, 8> buffer;
  CHECK(pair.second.receive_descriptors(buffer, Deadline::after(1ms)).error == Errc::timed_out);
  std::stop_source stop;
  go([stop]() mutable { (void)stop.request_stop(); });
  CHECK(pair.second.receive_descriptors(buffer, stop.get_token()).error == Errc::cancelled);
  const std::size_t filled = fill(pair.first);
  CHECK(pair.first.send_descriptors(bytes("x"), ends, Deadline::after(1ms)).error ==
        Errc::timed_out);
  CHECK(pair.first.send_descriptors(bytes("x"), ends, stop.get_token()).error == Errc::cancelled);
  std::thread sender([&] { CHECK(pair.first.send_descriptors(bytes("last"), ends).value == 4); });
  CHECK(read_text(pair.second, filled).size() == filled);
  const auto [received, error] = pair.second.receive_descriptors(buffer);
  CHECK(error == std::error_code{});
  CHECK(received.size == 4);
  CHECK(received.descriptors.size() == 1);
  sender.join();
}

TEST_SUITE_END();

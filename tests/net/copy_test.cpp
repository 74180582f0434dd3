#include <weft/net/copy.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <stop_token>
#include <string>
#include <utility>
#include <weft/error.hpp>
#include <weft/go.hpp>
#include <weft/net/unix_stream.hpp>

#include "tests/net/loopback.hpp"
#include "tests/support/fiber_test.hpp"

using namespace weft;
using namespace weft::test;

TEST_SUITE_BEGIN("net/copy");

namespace {

net::UnixStreamPair make_pair() {
  auto [pair, error] = net::UnixStream::pair();
  CHECK_FALSE(error);
  return std::move(pair);
}

// Wraps a stream, and has no descriptor that the kernel could splice.
struct Wrapped {
  net::ByteStream& stream;

  Result<std::size_t> read_some(std::span<std::byte> buffer, const Until& until) {
    return stream.read_some(buffer, until);
  }
  Result<std::size_t> write_all(std::span<const std::byte> data, const Until& until) {
    return stream.write_all(data, until);
  }
  net::Result<void> shutdown(net::Shutdown direction) { return stream.shutdown(direction); }
};

// Sends much data through a copy to a reader with small buffers.
template <class From, class To>
void copy_much(net::UnixStreamPair& in, net::UnixStreamPair& out, From& from, To& to) {
  const std::string much(300'000, 'x');
  shrink_buffers(out.first);
  auto sending = spawn([&] {
    CHECK_FALSE(in.first.write_all(bytes(much)).error);
    CHECK(in.first.shutdown(net::Shutdown::write));
  });
  auto copying = spawn([&] { return net::copy(from, to); });
  CHECK(read_text(out.second, much.size()) == much);
  sending.join();
  const auto copied = copying.join();
  CHECK_FALSE(copied.error);
  CHECK(copied.value == much.size());
}

}  // namespace

FIBER_TEST_CASE(
    "net::copy() transfers all bytes to a slow reader and returns the number of bytes") {
  net::UnixStreamPair in = make_pair();
  net::UnixStreamPair out = make_pair();
  copy_much(in, out, in.second, out.first);
}

FIBER_TEST_CASE("net::copy() between streams without descriptors uses a buffer") {
  net::UnixStreamPair in = make_pair();
  net::UnixStreamPair out = make_pair();
  Wrapped from{in.second};
  copy_much(in, out, from, out.first);
}

FIBER_TEST_CASE("net::copy() from a BufferedReader begins with the buffered bytes") {
  net::UnixStreamPair in = make_pair();
  net::UnixStreamPair out = make_pair();
  CHECK(in.first.write_all(bytes("head\nbody")).value == 9);
  CHECK(in.first.shutdown(net::Shutdown::write));
  net::BufferedReader reader(in.second);
  CHECK(reader.read_line().value == "head");
  CHECK(net::copy(reader, out.first).value == 4);
  CHECK(read_text(out.second, 4) == "body");
}

FIBER_TEST_CASE("net::copy() uses a buffer for a file that does not support splice") {
  std::string path = "/tmp/weft_copy_XXXXXX";
  Descriptor made(::mkstemp(path.data()));
  Descriptor appending(::open(path.c_str(), O_RDWR | O_APPEND | O_CLOEXEC));
  ::unlink(path.c_str());
  auto [file, no_file] = io::Watch::borrow(appending.get());
  CHECK_FALSE(no_file);
  auto [pipe, no_pipe] = io::make_pipe();
  CHECK_FALSE(no_pipe);
  CHECK(io::write_all(pipe.write, bytes("appended")).value == 8);
  pipe.write.close();
  const auto copied = net::copy(pipe.read, file);
  CHECK_FALSE(copied.error);
  CHECK(copied.value == 8);
  std::string text(9, '\0');
  CHECK(::pread(appending.get(), text.data(), text.size(), 0) == 8);
  CHECK(text.starts_with("appended"));
}

FIBER_TEST_CASE("net::copy() leaves both streams usable when a deadline ends its wait") {
  net::UnixStreamPair in = make_pair();
  net::UnixStreamPair out = make_pair();
  CHECK(in.first.write_all(bytes("one")).value == 3);
  const auto copied = net::copy(in.second, out.first, Deadline::past());
  CHECK(copied.error == Errc::timed_out);
  CHECK(copied.value == 3);
  CHECK(read_text(out.second, 3) == "one");
  CHECK(in.first.write_all(bytes("two")).value == 3);
  CHECK(read_text(in.second, 3) == "two");
}

FIBER_TEST_CASE("net::copy() ends at a stop request even if the streams never make it wait") {
  const std::string much(100'000, 'x');
  std::stop_source stop;
  stop.request_stop();
  const auto check_part = [&](auto wrap) {
    net::UnixStreamPair in = make_pair();
    net::UnixStreamPair out = make_pair();
    CHECK(in.first.write_all(bytes(much)).value == much.size());
    auto from = wrap(in.second);
    const auto copied = net::copy(from, out.first, stop.get_token());
    CHECK(copied.error == Errc::cancelled);
    CHECK(copied.value > 0);
    CHECK(copied.value < much.size());
    CHECK(read_text(out.second, copied.value) == much.substr(0, copied.value));
  };
  check_part([](net::UnixStream& stream) { return Wrapped{stream}; });
  check_part([](net::UnixStream& stream) { return std::move(stream); });
}

FIBER_TEST_CASE("net::copy() to a closed peer fails and raises no signal") {
  net::UnixStreamPair in = make_pair();
  net::UnixStreamPair out = make_pair();
  out.second.close();
  CHECK(in.first.write_all(bytes("lost")).value == 4);
  CHECK(net::copy(in.second, out.first).error == std::errc::broken_pipe);
}

FIBER_TEST_CASE("net::relay() continues in one direction after the other direction has ended") {
  net::UnixStreamPair client = make_pair();
  net::UnixStreamPair server = make_pair();
  auto relaying = spawn([&] { return net::relay(client.second, server.first); });
  CHECK(client.first.write_all(bytes("question")).value == 8);
  CHECK(client.first.shutdown(net::Shutdown::write));
  CHECK(read_text(server.second, 9) == "question");  // The end follows.
  CHECK(server.second.write_all(bytes("an answer")).value == 9);
  CHECK(read_text(client.first, 9) == "an answer");
  CHECK(server.second.shutdown(net::Shutdown::write));
  CHECK(read_text(client.first, 1).empty());
  const auto relayed = relaying.join();
  CHECK_FALSE(relayed.error);
  CHECK(relayed.value.forward == 8);
  CHECK(relayed.value.backward == 9);
}

FIBER_TEST_CASE("a buffered net::relay() ends both directions when one direction fails") {
  net::UnixStreamPair client = make_pair();
  net::UnixStreamPair server = make_pair();
  Wrapped first{client.second};
  Wrapped second{server.first};
  auto relaying = spawn([&] { return net::relay(first, second); });
  CHECK(client.first.write_all(bytes("x")).value == 1);
  CHECK(read_text(server.second, 1) == "x");
  server.first.close();
  const auto relayed = relaying.join();
  CHECK(relayed.error == Errc::closed);
  CHECK(relayed.value.forward == 1);
}

FIBER_TEST_CASE("a stop request ends a net::relay() that waits in both directions") {
  net::UnixStreamPair client = make_pair();
  net::UnixStreamPair server = make_pair();
  std::stop_source stop;
  auto relaying = spawn([&] { return net::relay(client.second, server.first, stop.get_token()); });
  CHECK(client.first.write_all(bytes("x")).value == 1);
  CHECK(read_text(server.second, 1) == "x");
  stop.request_stop();
  CHECK(relaying.join().error == Errc::cancelled);
}

TEST_SUITE_END();

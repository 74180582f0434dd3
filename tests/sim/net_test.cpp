#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <weft/clock.hpp>
#include <weft/go.hpp>
#include <weft/io.hpp>
#include <weft/net/datagram_socket.hpp>
#include <weft/net/dial.hpp>
#include <weft/net/serve.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/net/tcp_stream.hpp>
#include <weft/net/unix_listener.hpp>
#include <weft/net/unix_stream.hpp>
#include <weft/sim.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"

TEST_SUITE_BEGIN("sim/net");

using namespace std::chrono_literals;
namespace net = weft::net;
namespace sim = weft::sim;

namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// Returns all bytes up to the end of the stream.
std::string read_all(net::ByteStream& stream) {
  std::string text;
  std::array<char, 1000> buffer;
  for (;;) {
    const auto [count, error] = stream.read_some(std::as_writable_bytes(std::span(buffer)));
    if (error) return error == weft::Errc::end_of_stream ? text : text + error.message();
    text.append(buffer.data(), count);
  }
}

// Sends back all bytes up to the end of the stream.
void echo(net::ByteStream& stream) {
  std::array<std::byte, 4096> buffer;
  for (;;) {
    const auto [count, error] = stream.read_some(buffer);
    if (error || stream.write_all(std::span(buffer).first(count)).error) return;
  }
}

void run_echo(std::uint16_t port) {
  auto listener = net::TcpListener::listen(net::Address::any_v4(port));
  CHECK(!listener.error);
  (void)net::serve(listener.value, &echo);
}

// Starts an echo server on a separate host, and returns a connection to it.
net::TcpStream dial_echo(sim::World& world) {
  world.host("server", [] { run_echo(7); });
  world.run_for(1ms);
  auto [stream, error] = net::dial("server:7");
  REQUIRE(!error);
  return std::move(stream);
}

std::string long_text(std::size_t size) {
  std::string text(size, ' ');
  std::iota(text.begin(), text.end(), '\0');
  return text;
}

// Sends `text` to an echo server and returns what comes back.
std::string echo_of(net::TcpStream& stream, const std::string& text) {
  auto reader = weft::spawn([&] { return read_all(stream); });
  CHECK(!stream.write_all(bytes_of(text)).error);
  CHECK(stream.shutdown(net::Shutdown::write));
  return reader.join();
}

}  // namespace

TEST_CASE("a stream between simulated hosts carries all bytes in order despite lost packets") {
  const weft::test::TestGuard guard("a stream between hosts carries all bytes in order");
  const std::string text = long_text(1'000'000);
  (void)sim::check_determinism({.seeds = 10}, [&](sim::World& world) {
    world.network().latency(1ms, 50ms).loss(0.05);
    auto stream = dial_echo(world);
    CHECK(echo_of(stream, text) == text);
    CHECK(stream.peer_address().value.to_string() == "10.0.0.2:7");
  });
}

TEST_CASE(
    "a simulated round trip takes twice the latency, and the bandwidth limits the data rate") {
  const weft::test::TestGuard guard("a round trip takes two latencies");
  sim::explore({.seeds = 5}, [](sim::World& world) {
    world.network().latency(20ms, 20ms);
    auto stream = dial_echo(world);
    std::array<std::byte, 1> one{};
    auto before = weft::Clock::now();
    CHECK(!stream.write_all(one).error);
    CHECK(!stream.read_exactly(one).error);
    CHECK(weft::Clock::now() - before >= 40ms);
    CHECK(weft::Clock::now() - before < 42ms);
    world.network().bandwidth(100'000);
    before = weft::Clock::now();
    CHECK(echo_of(stream, long_text(200'000)).size() == 200'000);
    CHECK(weft::Clock::now() - before >= 2s);
    CHECK(weft::Clock::now() - before < 4s);
  });
}

TEST_CASE(
    "a simulated read returns all or part of the bytes that have arrived, depending on the seed") {
  const weft::test::TestGuard guard("a read returns all that has arrived or a part of it");
  std::set<std::size_t> counts;
  sim::explore({.seeds = 100}, [&](sim::World& world) {
    auto stream = dial_echo(world);
    CHECK(!stream.write_all(bytes_of(long_text(100))).error);
    world.run_for(1s);
    std::array<std::byte, 1000> buffer{};
    const std::size_t first = stream.read_some(buffer).value;
    counts.insert(first);
    if (first < 100) CHECK(!stream.read_exactly(std::span(buffer).first(100 - first), 1us).error);
  });
  CHECK(counts.contains(100));
  CHECK(counts.size() > 3);
}

TEST_CASE("a simulated write accepts all or part of the bytes, depending on the seed") {
  const weft::test::TestGuard guard("a write takes all bytes or a part of them");
  std::set<std::size_t> counts;
  sim::explore({.seeds = 100}, [&](sim::World& world) {
    auto stream = dial_echo(world);
    counts.insert(stream.write_some(bytes_of(long_text(100))).value);
  });
  CHECK(counts.contains(100));
  CHECK(counts.size() > 3);
}

TEST_CASE("names of simulated hosts are resolved, and other names and addresses cause errors") {
  const weft::test::TestGuard guard("names lead to hosts");
  sim::explore({.seeds = 1}, [](sim::World& world) {
    world.host("server", [] {});
    CHECK(net::resolve("server", 80).value.at(0).to_string() == "10.0.0.2:80");
    CHECK(net::resolve("localhost", 80).value.at(0).to_string() == "127.0.0.1:80");
    CHECK(net::resolve("stranger", 80).error);
    CHECK(net::dial("10.1.2.3:80").error == std::errc::network_unreachable);
  });
}

TEST_CASE(
    "a simulated port without a listener refuses connections, and a host without power does not "
    "answer") {
  const weft::test::TestGuard guard("a port where nobody listens refuses");
  sim::explore({.seeds = 5}, [](sim::World& world) {
    world.host("server", [] { run_echo(7); });
    CHECK(net::dial("server:8").error == std::errc::connection_refused);
    world.power_off("server");
    auto before = weft::Clock::now();
    CHECK(net::dial("server:7", 3s).error == weft::Errc::timed_out);
    CHECK(weft::Clock::now() - before >= 3s);
    before = weft::Clock::now();
    CHECK(net::dial("server:7").error == std::errc::timed_out);
    CHECK(weft::Clock::now() - before > 60s);
    world.restart("server");
    world.run_for(1s);
    CHECK(!net::dial("server:7").error);
  });
}

TEST_CASE("a simulated connect to a full backlog waits until another connection is accepted") {
  const weft::test::TestGuard guard("a full backlog lets a connection wait");
  sim::explore({.seeds = 5}, [](sim::World& world) {
    auto listener = net::TcpListener::listen(net::Address::any_v4(7), {.backlog = 1});
    REQUIRE(!listener.error);
    auto first = net::dial("world:7");
    CHECK(!first.error);
    CHECK(net::dial("world:7", 500ms).error == weft::Errc::timed_out);
    auto second = weft::spawn([] { return net::dial("world:7").error; });
    world.run_for(10ms);
    CHECK(!listener.value.accept().error);
    CHECK(!second.join());
  });
}

TEST_CASE("a simulated host without free descriptors accepts again when a descriptor is closed") {
  const weft::test::TestGuard guard("a host without descriptors accepts again");
  sim::explore({.seeds = 5}, [](sim::World& world) {
    world.host("server", [] { run_echo(7); });
    world.run_for(1ms);
    world.limit_sockets("server", 2);
    std::array<std::byte, 1> one{};
    auto first = net::dial("server:7").value;
    CHECK(!first.write_all(one).error);
    CHECK(!first.read_exactly(one).error);
    auto second = net::dial("server:7").value;
    CHECK(!second.write_all(one).error);
    CHECK(second.read_exactly(one, 1min).error == weft::Errc::timed_out);
    first.close();
    CHECK(!second.read_exactly(one, 1min).error);
    world.limit_sockets("world", 1);
    CHECK(net::dial("server:7").error == std::errc::too_many_files_open);
    world.limit_sockets("world", 2);  // `second` is open.
    CHECK(net::UnixStream::pair().error == std::errc::too_many_files_open);
    world.limit_sockets("world", 3);
    CHECK_FALSE(net::UnixStream::pair().error);
  });
}

TEST_CASE("a short partition delays a simulated stream, and a long partition breaks the stream") {
  const weft::test::TestGuard guard("a partition holds a stream up");
  sim::explore({.seeds = 5}, [](sim::World& world) {
    auto stream = dial_echo(world);
    std::array<std::byte, 1> one{};
    for (const bool both_ways : {true, false}) {
      if (both_ways) world.partition("world", "server");
      if (!both_ways) world.partition_one_way("server", "world");
      CHECK(!stream.write_all(one).error);
      CHECK(stream.read_exactly(one, 10s).error == weft::Errc::timed_out);
      world.heal();
      CHECK(!stream.read_exactly(one, 30s).error);
    }
    world.partition("world", "server");
    CHECK(!stream.write_all(one).error);
    CHECK(stream.read_exactly(one, 1h).error == std::errc::timed_out);
    CHECK(stream.write_all(one).error == std::errc::broken_pipe);
  });
}

TEST_CASE(
    "a crash ends or resets a simulated host's connections, and the restarted host serves again") {
  const weft::test::TestGuard guard("a crash ends or resets the connections of a host");
  sim::explore({.seeds = 20}, [](sim::World& world) {
    world.host("server", [] { run_echo(7); });
    world.run_for(1ms);
    auto idle = net::dial("server:7");
    auto busy = net::dial("server:7");
    REQUIRE(!idle.error);
    REQUIRE(!busy.error);
    world.crash("server");
    CHECK(!world.is_up("server"));
    std::array<std::byte, 1> one{};
    CHECK(idle.value.read_some(one, 1s).error == weft::Errc::end_of_stream);
    CHECK(!busy.value.write_all(one).error);
    world.run_for(1s);
    CHECK(busy.value.write_all(one).error == std::errc::connection_reset);
    CHECK(busy.value.write_all(one).error == std::errc::broken_pipe);
    CHECK(net::dial("server:7").error == std::errc::connection_refused);
    world.restart("server");
    world.run_for(1ms);
    CHECK(!net::dial("server:7").error);
  });
}

TEST_CASE("a simulated host that restarts after a power loss resets its earlier connections") {
  const weft::test::TestGuard guard("a host that lost its power resets a connection of before");
  sim::explore({.seeds = 5}, [](sim::World& world) {
    auto stream = dial_echo(world);
    world.power_off("server");
    std::array<std::byte, 1> one{};
    CHECK(stream.read_some(one, 1h).error == weft::Errc::timed_out);
    CHECK(!stream.write_all(one).error);
    world.restart("server");
    CHECK(stream.read_some(one, 1h).error == std::errc::connection_reset);
  });
}

TEST_CASE("a stopped simulated host still receives data, and answers when it continues") {
  const weft::test::TestGuard guard("a stopped host keeps what comes");
  sim::explore({.seeds = 5}, [](sim::World& world) {
    world.host("server", [] { run_echo(7); });
    world.run_for(1ms);
    world.stop("server");
    auto [stream, error] = net::dial("server:7", 1s);
    REQUIRE(!error);
    std::array<std::byte, 1> one{};
    CHECK(!stream.write_all(one).error);
    CHECK(stream.read_exactly(one, 1h).error == weft::Errc::timed_out);
    world.go_on("server");
    CHECK(!stream.read_exactly(one, 1s).error);
  });
}

TEST_CASE("a fiber that crashes its own simulated host does not continue") {
  const weft::test::TestGuard guard("a host that crashes itself does not continue");
  bool went_on = false;
  int starts = 0;
  sim::explore({.seeds = 1}, [&](sim::World& world) {
    world.host("server", [&] {
      if (++starts > 1) return;
      world.crash("server");
      went_on = true;
    });
    world.run_for(1s);
    world.restart("server");
    world.run_for(1s);
  });
  CHECK(!went_on);
  CHECK(starts == 2);
}

TEST_CASE("simulated datagrams are lost, duplicated and reordered") {
  const weft::test::TestGuard guard("datagrams are lost, duplicated and reordered");
  (void)sim::check_determinism({.seeds = 3}, [](sim::World& world) {
    world.network().latency(1ms, 50ms).loss(0.2).duplication(0.2);
    auto [receiver, no_receiver] = net::UdpSocket::bind(net::Address::any_v4(9));
    REQUIRE(!no_receiver);
    world.host("sender", [] {
      auto [sender, error] = net::UdpSocket::connected(net::resolve("world", 9).value.at(0));
      CHECK(!error);
      for (int i = 0; i < 200; ++i) {
        CHECK(sender.send(std::as_bytes(std::span(&i, 1))));
        weft::this_fiber::sleep_for(1ms);
      }
    });
    std::vector<int> times(200);
    int last = -1;
    int overtaken = 0;
    for (;;) {
      int number = 0;
      const auto got =
          receiver.receive(std::as_writable_bytes(std::span(&number, 1)), weft::Until(1s));
      if (got.error) break;
      CHECK(got.value.from.to_string().starts_with("10.0.0.2:"));
      ++times.at(static_cast<std::size_t>(number));
      if (number < last) ++overtaken;
      last = number;
    }
    const auto come = [&](int wanted) { return std::ranges::count(times, wanted); };
    CHECK(come(0) > 10);
    CHECK(come(1) > 50);
    CHECK(come(2) > 10);
    CHECK(overtaken > 10);
  });
}

TEST_CASE("simulated Unix sockets connect within a host") {
  const weft::test::TestGuard guard("Unix sockets connect within a host");
  sim::explore({.seeds = 5}, [](sim::World& world) {
    const auto address = net::UnixAddress::path("/run/echo").value;
    auto listener = net::UnixListener::listen(address);
    REQUIRE(!listener.error);
    auto server = weft::spawn([&] { (void)net::serve(listener.value, &echo); });
    {
      auto [stream, error] = net::UnixStream::connect(address);
      REQUIRE(!error);
      CHECK(!stream.write_all(bytes_of("hello")).error);
      CHECK(stream.shutdown(net::Shutdown::write));
      CHECK(read_all(stream) == "hello");
    }
    std::error_code elsewhere;
    world.host("other", [&] { elsewhere = net::UnixStream::connect(address).error; });
    world.run_for(1s);
    CHECK(elsewhere == std::errc::no_such_file_or_directory);
    auto pair = net::UnixStream::pair();
    REQUIRE(!pair.error);
    CHECK(!pair.value.first.write_all(bytes_of("x")).error);
    std::array<std::byte, 1> one{};
    CHECK(!pair.value.second.read_exactly(one).error);
    listener.value.close();
    server.join();
  });
}

TEST_CASE("a simulation refuses a real descriptor with a message that names the call") {
  const weft::test::TestGuard guard("what is the system's is refused");
  std::string reason;
  try {
    sim::run([] { CHECK(weft::io::make_pipe().error); });
  } catch (const sim::Failure& failure) {
    reason = failure.reason();
  }
  CHECK(reason.find("is the system's: epoll_ctl() is refused in a simulation") !=
        std::string::npos);
}

TEST_SUITE_END();

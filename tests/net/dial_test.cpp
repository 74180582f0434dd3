#include <weft/net/dial.hpp>

#include <chrono>
#include <new>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>
#include <weft/clock.hpp>
#include <weft/event.hpp>
#include <weft/go.hpp>

#include "tests/net/loopback.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/refusing_port.hpp"
#include "tests/support/sim_test.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using net::Address;
using net::TcpListener;
using net::TcpStream;

TEST_SUITE_BEGIN("net/dial");

namespace {

// Is a listener that never accepts, and whose queue is full, so new connections hang.
class FullListener {
 public:
  FullListener() : listener_(listen_anywhere({.backlog = 0})) {
    crowd_.push_back(TcpStream::connect(address()).value);
    for (;;) {
      auto [stream, error] = TcpStream::connect(address(), Deadline::after(50ms));
      if (error) break;
      crowd_.push_back(std::move(stream));
    }
  }

  [[nodiscard]] Address address() const { return listener_.local_address().value; }

 private:
  TcpListener listener_;
  std::vector<TcpStream> crowd_;
};

// Returns some addresses at once, and other addresses when the test permits.
class LateResolver final : public net::AnyResolver {
 public:
  LateResolver(const Address& first, const Address& late) : first_(first), late_(late) {}
  Event allowed;
  std::error_code ended;

 private:
  net::Result<std::vector<Address>> look_up(const std::string&, std::uint16_t,
                                            const Until&) override {
    return {.value = {first_}};
  }
  net::Result<std::vector<Address>> look_up_rest(const std::string&, std::span<const Address>,
                                                 const Until& until) override {
    if (!allowed.wait_until(until)) return {.error = ended = until.reason()};
    if (late_.port() == 0) throw std::bad_alloc();
    return {.value = {late_, late_}};
  }

  Address first_;
  Address late_;
};

}  // namespace

FIBER_TEST_CASE("net::Resolver resolves a name to its addresses, and an address to itself") {
  net::Resolver resolver;
  const auto [local, error] = resolver.resolve("localhost", 80);
  CHECK(error == std::error_code{});
  CHECK(!local.empty());
  for (const Address& address : local) CHECK(address.port() == 80);
  CHECK(resolver.resolve("127.0.0.1", 8).value.at(0) == Address::loopback_v4(8));
  CHECK(resolver.resolve("::1", 8).value.at(0) == Address::loopback_v6(8));
  CHECK(resolver.stats().finished == 1);
  const auto unknown = resolver.resolve("no-such-name.invalid", 80);
  CHECK(unknown.error.category() == net::resolver_category());
  CHECK(!unknown.error.message().empty());
  std::stop_source stop;
  (void)stop.request_stop();
  CHECK(resolver.resolve("localhost", 80, stop.get_token()).error == Errc::cancelled);
  CHECK(resolver.resolve("localhost", 80, Deadline::past()).error == Errc::timed_out);
  // None of them is truncated at the zero byte.
  constexpr std::string_view kCut[] = {{"localhost\0.example.org", 22}, {"127.0.0.1\0x", 11}};
  for (const std::string_view host : kCut) {
    CHECK(resolver.resolve(host, 80).error == std::errc::invalid_argument);
    const std::string text = std::string(host) + ":80";
    CHECK(net::parse_host_port(text).error == std::errc::invalid_argument);
    CHECK(net::dial(text).error == std::errc::invalid_argument);
    CHECK(Address::parse(text).error == std::errc::invalid_argument);
  }
}

TEST_CASE("a string with a host and a port is parsed, and any other string is refused") {
  CHECK(net::parse_host_port("example.org:443").value.host == "example.org");
  CHECK(net::parse_host_port("example.org:443").value.port == 443);
  CHECK(net::parse_host_port("[::1]:80").value.host == "::1");
  CHECK(net::parse_host_port("127.0.0.1:0").value.host == "127.0.0.1");
  for (const char* wrong :
       {"", "host", ":80", "host:", "host:65536", "host:8x", "::1:80", "[h]:1"}) {
    CHECK(net::parse_host_port(wrong).error == std::errc::invalid_argument);
  }
}

FIBER_TEST_CASE("dial() connects to the first address that answers") {
  TcpListener listener = listen_anywhere();
  const Address alive = listener.local_address().value;
  const RefusingPort port;
  const std::vector<Address> addresses{Address::loopback_v6(1), port.address(), alive};
  auto [stream, error] = net::dial(addresses);
  CHECK(error == std::error_code{});
  CHECK(stream.peer_address().value == alive);
  CHECK(net::dial(std::span(addresses).first(2)).error);
  CHECK(net::dial(std::span(addresses).first(0)).error == std::errc::invalid_argument);
}

SIM_TEST_CASE("dial() tries the next address after attempt_delay when an address does not answer") {
  TcpListener listener = listen_anywhere();
  const FullListener full;
  const std::vector<Address> addresses{full.address(), listener.local_address().value};
  const auto began = Clock::now();
  auto [stream, error] = net::dial(addresses, {.attempt_delay = 5s});
  CHECK(error == std::error_code{});
  CHECK(stream.peer_address().value == listener.local_address().value);
  CHECK(Clock::now() - began >= 5s);
  CHECK(Clock::now() - began < 6s);
  const std::vector<Address> hangs(2, full.address());
  CHECK(net::dial(hangs, {.attempt_delay = 1s}, Deadline::after(20s)).error == Errc::timed_out);
  std::stop_source stop;
  auto caller = spawn([&] { return net::dial(hangs, stop.get_token()).error; });
  sim::settle();
  (void)stop.request_stop();
  CHECK(caller.join() == Errc::cancelled);
}

FIBER_TEST_CASE("dial() accepts a name with a port") {
  TcpListener listener = listen_anywhere();
  const std::uint16_t port = listener.local_address().value.port();
  auto [stream, error] = net::dial("127.0.0.1:" + std::to_string(port));
  CHECK(error == std::error_code{});
  CHECK(net::dial("127.0.0.1").error == std::errc::invalid_argument);
}

SIM_TEST_CASE(
    "dial() also tries addresses that the resolver returns after the first attempts have begun") {
  TcpListener listener = listen_anywhere();
  const Address alive = listener.local_address().value;
  const FullListener full;
  const auto dial = [](LateResolver& resolver, const Until& until = {}) {
    return net::dial("late.test:1", {.attempt_delay = 1s, .resolver = &resolver}, until);
  };
  LateResolver resolver(full.address(), alive);
  auto dialled = spawn([&] { return dial(resolver); });
  resolver.allowed.set();
  auto [stream, error] = dialled.join();
  CHECK(error == std::error_code{});
  CHECK(stream.peer_address().value == alive);
  // A dial that has a connection does not wait for late addresses; a dial without a connection
  // does.
  LateResolver never(alive, full.address());
  CHECK_FALSE(dial(never).error);
  CHECK(never.ended == Errc::cancelled);
  // In a simulation, the port of a closed listener stays free.
  LateResolver refused(listen_anywhere().local_address().value, alive);
  CHECK(dial(refused, Deadline::after(2min)).error == Errc::timed_out);
  refused.allowed.set();
  CHECK_FALSE(dial(refused).error);
  LateResolver broken(full.address(), Address::loopback_v4(0));
  broken.allowed.set();
  CHECK_THROWS_AS((void)dial(broken), std::bad_alloc);
}

THREAD_TEST_CASE("a deadline or a stop request ends a plain thread's resolve() and dial()") {
  net::Resolver resolver;
  CHECK(!resolver.resolve("localhost", 80).value.empty());
  CHECK(resolver.resolve("localhost", 80, Deadline::past()).error == Errc::timed_out);
  TcpListener listener = listen_anywhere();
  const Address alive = listener.local_address().value;
  auto [stream, error] = net::dial("127.0.0.1:" + std::to_string(alive.port()));
  CHECK(error == std::error_code{});
  CHECK(stream.peer_address().value == alive);
  const FullListener full;
  const std::vector<Address> hangs(2, full.address());
  CHECK(net::dial(hangs, {.attempt_delay = 1ms}, Deadline::after(2ms)).error == Errc::timed_out);
  std::stop_source stop;
  go([&] { (void)stop.request_stop(); });
  CHECK(net::dial(hangs, stop.get_token()).error == Errc::cancelled);
}

SIM_TEST_CASE("a stop request ends a connection attempt to a listener with a full backlog") {
  const FullListener full;
  std::stop_source stop;
  auto caller = spawn([&] { return TcpStream::connect(full.address(), stop.get_token()).error; });
  sim::settle();
  (void)stop.request_stop();
  CHECK(caller.join() == Errc::cancelled);
}

TEST_SUITE_END();

#include <netdb.h>

#include <array>
#include <chrono>
#include <functional>
#include <new>
#include <string>
#include <system_error>
#include <weft/files.hpp>
#include <weft/go.hpp>
#include <weft/net/datagram_socket.hpp>
#include <weft/net/dial.hpp>
#include <weft/net/serve.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/sim.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/skip.hpp"

// A sanitizer has its own operator new, which the simulation cannot make fail.
constexpr bool kFailsMemory = !weft::test::kSanitized;

TEST_SUITE_BEGIN("sim/faults");

using namespace std::chrono_literals;
namespace files = weft::files;
namespace net = weft::net;
namespace sim = weft::sim;

namespace {

std::string reason_of(const std::function<void(sim::World&)>& body) {
  try {
    sim::explore({.seeds = 20}, body);
  } catch (const sim::Failure& failure) {
    return failure.reason();
  }
  return {};
}

// Sends back single bytes until a call fails.
void serve_once() {
  auto [listener, error] = net::TcpListener::listen(net::Address::any_v4(7));
  if (error) return;
  (void)net::serve(listener, [](net::ByteStream& stream) {
    std::array<std::byte, 1> one{};
    while (!stream.read_exactly(one).error && !stream.write_all(one).error) {
    }
  });
}

void run_echo() {
  for (;;) {
    try {
      serve_once();
    } catch (const std::bad_alloc&) {
      sim::note("has no memory to serve");
    }
    weft::this_fiber::sleep_for(10ms);
  }
}

bool has_echo() {
  auto [stream, error] = net::dial("server:7", 1s);
  std::array<std::byte, 1> one{std::byte{'e'}};
  if (error || stream.write_all(one).error) return false;
  one[0] = std::byte{0};
  if (stream.read_exactly(one, 5s).error) return false;
  sim::check(one[0] == std::byte{'e'}, "what comes back is what was sent");
  return true;
}

}  // namespace

TEST_CASE(
    "a simulated service continues while its calls fail, and answers when calls succeed again") {
  const weft::test::TestGuard guard("a service outlives calls that fail");
  int answers = 0;
  int failures = 0;
  (void)sim::check_determinism({.seeds = 30}, [&](sim::World& world) {
    world.host("server", &run_echo);
    world.fail_calls("server", {.sockets = 0.05, .memory = kFailsMemory ? 0.01 : 0});
    world.fail_calls("world", {.sockets = 0.02});
    world.run_for(1s);
    for (int i = 0; i < 50; ++i) ++(has_echo() ? answers : failures);
    world.fail_calls("server", {});
    world.fail_calls("world", {});
    world.run_for(10s);
    sim::check(has_echo(), "the service answers");
  });
  CHECK(answers > 100);
  CHECK(failures > 100);
}

TEST_CASE("a simulated file has its complete contents unless a call on the file has failed") {
  const weft::test::TestGuard guard("a file has its whole contents, or a call has failed");
  int errors = 0;
  sim::explore({.seeds = 50}, [&](sim::World& world) {
    world.host("store", [&] {
      std::string state = "0";
      for (int i = 1; i < 50; ++i) {
        const std::string next = std::to_string(i);
        if (files::replace_file("/state", next)) {
          state = next;
        } else {
          ++errors;
        }
        const auto [now, error] = files::read_file("/state");
        if (!error) sim::check(now == state, "the file is the last that was written");
      }
      auto walk = files::Walk("/");
      for (auto entry = walk.next(); entry.value; entry = walk.next()) {
        if (!entry.error) sim::check(entry.value->path == "/state", "nothing else is left");
      }
    });
    world.put_file("store", "/state", "0");
    world.fail_calls("store", {.files = 0.02});
    world.run_for(10s);
  });
  CHECK(errors > 10);
}

TEST_CASE("calls on simulated paths change nothing when the simulation makes the calls fail") {
  const weft::test::TestGuard guard("calls on paths change nothing if the seed makes them fail");
  int failed = 0;
  int done = 0;
  sim::explore({.seeds = 20}, [&](sim::World& world) {
    world.host("store", [&] {
      const auto count = [&](const weft::Result<void>& result) {
        ++(result ? done : failed);
        return static_cast<bool>(result);
      };
      while (!count(files::create_directory("/d"))) continue;
      while (!count(files::rename("/d", "/e"))) continue;
      while (!count(files::remove_all("/e"))) continue;
    });
    world.fail_calls("store", {.files = 0.3});
    world.run_for(1s);
  });
  CHECK(done == 60);
  CHECK(failed > 5);
}

TEST_CASE(
    "a socket stays usable after a failed lookup or send, and a file read may return fewer bytes") {
  const weft::test::TestGuard guard("lookups and datagrams that fail leave the socket usable");
  int lookups = 0;
  int datagrams = 0;
  int parts = 0;
  sim::explore({.seeds = 5}, [&](sim::World& world) {
    world.put_file("world", "/ten", "0123456789");
    auto file = files::File::open("/ten");
    auto socket = net::UdpSocket::bind(net::Address::any_v4(9));
    sim::check(!file.error && !socket.error, "nothing fails before fail_calls()");
    world.fail_calls("world", {.sockets = 0.2, .files = 0.2});
    const std::error_code try_again{EAI_AGAIN, net::resolver_category()};
    std::array<std::byte, 10> ten{};
    int sent = 0;
    for (int i = 0; i < 50; ++i) {
      const auto [addresses, error] = net::resolve("world", 9);
      sim::check(!error || error == try_again, "a lookup fails by EAI_AGAIN");
      if (error) {
        ++lookups;
      } else if (socket.value.send_to(ten, addresses.at(0))) {
        ++sent;
      } else {
        ++datagrams;
      }
      const auto read = file.value.read_some(ten, 0);
      if (!read.error && read.value == 5) ++parts;
    }
    world.fail_calls("world", {});
    for (; sent != 0; --sent) sim::check(!socket.value.receive(ten, 1s).error, "each one arrives");
  });
  CHECK(lookups > 10);
  CHECK(datagrams > 10);
  CHECK(parts > 10);
}

TEST_CASE(
    "a failed allocation throws std::bad_alloc in a fiber of the chosen host, and nowhere else") {
  if (!kFailsMemory) {
    return weft::test::skip("a sanitizer replaces operator new");
  }
  const weft::test::TestGuard guard("an allocation that fails is a std::bad_alloc");
  int caught = 0;
  sim::explore({.seeds = 10}, [&](sim::World& world) {
    const auto allocate = [] {
      for (int i = 0; i < 1000; ++i) {
        ::operator delete(::operator new(100));
        weft::this_fiber::yield();
      }
    };
    world.host("poor", [&] {
      try {
        allocate();
      } catch (const std::bad_alloc&) {
        ++caught;
      }
    });
    world.host("rich", allocate);
    world.fail_calls("poor", {.memory = 0.1});
    allocate();
    CHECK_THROWS_AS(world.fail_calls("world", {.memory = 0.1}), std::invalid_argument);
  });
  CHECK(caught == 10);
}

TEST_CASE(
    "a simulation finds an unhandled error and names the failing calls that cause the error") {
  const weft::test::TestGuard guard("what a program does not see to is found");
  const std::string reason = reason_of([](sim::World& world) {
    world.host("careless", [] {
      for (int i = 0; i < 20; ++i) {
        (void)files::write_file("/state", std::to_string(i));
        sim::check(files::read_file("/state").value == std::to_string(i), "the state is kept");
      }
    });
    world.fail_calls("careless", {.files = 0.05});
    world.run_for(1s);
  });
  CHECK(reason.starts_with("check failed: the state is kept"));
  CHECK(reason.find(" failing calls are needed") != std::string::npos);
}

TEST_SUITE_END();

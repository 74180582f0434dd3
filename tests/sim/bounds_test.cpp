#include <chrono>
#include <memory>
#include <string>
#include <vector>
#include <weft/clock.hpp>
#include <weft/go.hpp>
#include <weft/net/dial.hpp>
#include <weft/net/serve.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/sim.hpp>
#include <weft/this_fiber.hpp>
#include <weft/timer.hpp>

#include "tests/support/fiber_test.hpp"

// Tests the cost of large simulations. In real time, each case would take hours or a day.
TEST_SUITE_BEGIN("sim/bounds");

using namespace std::chrono_literals;
namespace net = weft::net;
namespace sim = weft::sim;

TEST_CASE(
    "a simulation runs a day of a service with 1 000 idle connections and a tick per second") {
  const weft::test::TestGuard guard("a day of a service with 1 000 idle connections");
  int ticks = 0;
  sim::explore({.seeds = 1}, [&](sim::World& world) {
    world.host("service", [&] {
      auto listener = net::TcpListener::listen(net::Address::any_v4(7));
      weft::go([&] {
        weft::Ticker ticker(1s);
        for (;;) {
          ticker.wait();
          ++ticks;
        }
      });
      (void)net::serve(listener.value, {}, [](net::Connection& connection) {
        (void)connection.wait_readable();
        return net::Next::close;
      });
    });
    world.run_for(1ms);
    std::vector<net::TcpStream> connections;
    for (int i = 0; i < 1000; ++i) {
      auto [stream, error] = net::dial("service:7");
      CHECK(!error);
      connections.push_back(std::move(stream));
    }
    world.run_for(24h);
  });
  CHECK(ticks >= 86'399);
}

TEST_CASE("a simulation can run fibers for a million turns") {
  const weft::test::TestGuard guard("a million turns of fibers are simulated in one run");
  const sim::Report report = sim::explore({.seeds = 1}, [](sim::World&) {
    std::vector<weft::JoinHandle<void>> fibers;
    for (int i = 0; i < 10; ++i) {
      fibers.push_back(weft::spawn([] {
        for (int j = 0; j < 100'000; ++j) weft::this_fiber::yield();
      }));
    }
    for (auto& fiber : fibers) fiber.join();
  });
  CHECK(report.turns >= 1'000'000);
}

TEST_SUITE_END();

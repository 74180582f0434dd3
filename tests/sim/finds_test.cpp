#include <chrono>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>
#include <weft/clock.hpp>
#include <weft/go.hpp>
#include <weft/http/client.hpp>
#include <weft/http/server.hpp>
#include <weft/mutex.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/pool.hpp>
#include <weft/semaphore.hpp>
#include <weft/sim.hpp>
#include <weft/this_fiber.hpp>
#include <weft/timer.hpp>

#include "tests/support/fiber_test.hpp"

// Each case finds a fault of a former round when tools/lab/put_back puts it into the source again.
TEST_SUITE_BEGIN("sim/finds");

using namespace std::chrono_literals;
namespace net = weft::net;
namespace sim = weft::sim;

namespace {

sim::Options options() {
  const char* seeds = std::getenv("WEFT_SIM_SEEDS");
  return {.seeds = seeds == nullptr ? 50U : std::strtoull(seeds, nullptr, 10), .time_limit = 24h};
}

}  // namespace

TEST_CASE("a mutex passes from each waiter to the next one") {
  const weft::test::TestGuard guard("a mutex passes from each waiter to the next one");
  sim::explore(options(), [](sim::World&) {
    weft::Mutex mutex;
    std::vector<weft::JoinHandle<void>> fibers;
    for (int i = 0; i < 4; ++i) {
      fibers.push_back(weft::spawn([&] {
        for (int j = 0; j < 5; ++j) {
          const std::lock_guard lock(mutex);
          weft::this_fiber::yield();
        }
      }));
    }
    for (auto& fiber : fibers) fiber.join();
  });
}

TEST_CASE("a waiter that gives up lets the smaller demands after it through") {
  const weft::test::TestGuard guard("a waiter that gives up lets smaller demands through");
  sim::explore(options(), [](sim::World&) {
    weft::Semaphore semaphore(1);
    auto large = weft::spawn([&] { (void)semaphore.try_acquire_until(10ms, 2); });
    auto small = weft::spawn([&] { semaphore.acquire(1); });
    small.join();
    large.join();
  });
}

TEST_CASE("a timer that is set wakes the fiber that waits for it") {
  const weft::test::TestGuard guard("a timer that is set wakes the fiber that waits");
  sim::explore(options(), [](sim::World&) {
    weft::Timer timer;  // It is never due.
    auto waits = weft::spawn([&] { timer.wait(); });
    weft::this_fiber::yield();
    (void)timer.reset(10ms);
    waits.join();
  });
}

TEST_CASE("no sleep is late because another one is longer") {
  const weft::test::TestGuard guard("no sleep is late because another one is longer");
  sim::explore(options(), [](sim::World&) {
    auto longer = weft::spawn([] { weft::this_fiber::sleep_for(1h); });
    auto shorter = weft::spawn([] {
      const auto before = weft::Clock::now();
      weft::this_fiber::sleep_for(1s);
      sim::check(weft::Clock::now() - before < 2s, "the sleep is not late");
    });
    shorter.join();
    longer.join();
  });
}

TEST_CASE("a request on a connection that the server just closed is made again") {
  const weft::test::TestGuard guard("a request on a closed connection is made again");
  sim::explore(options(), [](sim::World& world) {
    world.network().latency(1ms, 50ms);
    world.host("server", [] {
      weft::http::Server server([](auto&, auto& response) { (void)response.send("x"); },
                                {.limits = {.idle = 1s}});
      auto listener = net::TcpListener::listen(net::Address::any_v4(80));
      (void)server.serve(listener.value);
    });
    world.run_for(1ms);
    weft::http::Client client;
    for (int i = 0; i < 10; ++i) {
      auto [reply, error] = client.get("http://server/", 30s);
      sim::check(!error && reply.read_all().value == "x", "each request is answered");
      world.run_for(900ms + std::chrono::milliseconds(sim::random(150)));
    }
  });
}

TEST_CASE("a submitter that waits for room in a pool gets it") {
  const weft::test::TestGuard guard("a submitter that waits for room in a pool gets it");
  sim::explore(options(), [](sim::World&) {
    weft::FiberPool pool({.capacity = 2, .queue_capacity = 0});
    std::vector<weft::JoinHandle<void>> fibers;
    for (int i = 0; i < 6; ++i) {
      fibers.push_back(weft::spawn([&] { (void)pool.submit([] { weft::this_fiber::yield(); }); }));
    }
    for (auto& fiber : fibers) fiber.join();
  });
}

TEST_SUITE_END();

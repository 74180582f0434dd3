#include <chrono>
#include <optional>
#include <string>
#include <weft/channel.hpp>
#include <weft/clock.hpp>
#include <weft/go.hpp>
#include <weft/sim.hpp>
#include <weft/this_fiber.hpp>
#include <weft/timer.hpp>

#include "tests/support/fiber_test.hpp"

TEST_SUITE_BEGIN("sim/clocks");

using namespace std::chrono_literals;
namespace sim = weft::sim;

namespace {

std::chrono::nanoseconds distance(std::chrono::nanoseconds one, std::chrono::nanoseconds other) {
  return std::chrono::abs(one - other);
}

// Holds the duration of a wait by the clock of the host, and by the clock of the world.
struct Waits {
  std::chrono::nanoseconds own{0};
  std::chrono::nanoseconds real{0};
};

template <class Wait>
Waits measure(double parts_per_million, Wait wait) {
  Waits waits;
  sim::explore({.seeds = 5}, [&](sim::World& world) {
    world.host("drifts", [&] {
      const auto real = world.now();
      const auto own = weft::Clock::now();
      wait();
      waits = {weft::Clock::now() - own, world.now() - real};
    });
    world.clock_drift("drifts", parts_per_million);
    world.run_for(4h);
  });
  return waits;
}

}  // namespace

TEST_CASE("sleeps, deadlines and tickers of a simulated host follow the host's own clock") {
  const weft::test::TestGuard guard("sleeps, limits and tickers end by the host's clock");
  const auto sleep = [] { weft::this_fiber::sleep_for(1h); };
  const auto limit = [] {
    weft::Channel<int> silent;
    std::optional<int> value;
    CHECK(silent.receive_until(value, 1h) == weft::ChannelStatus::timed_out);
  };
  const auto tick = [] {
    weft::Ticker ticker(1min);
    for (int i = 0; i < 60; ++i) ticker.wait();
  };
  for (const double drift : {-500'000.0, -100.0, 0.0, 100.0, 1'000'000.0}) {
    const auto expected =
        std::chrono::nanoseconds(static_cast<std::int64_t>(3600e9 / (1 + drift / 1e6)));
    const Waits slept = measure(drift, sleep);
    CHECK(slept.own >= 1h);
    CHECK(slept.own < 1h + 1ms);
    CHECK(distance(slept.real, expected) < 1ms);
    CHECK(distance(measure(drift, limit).real, expected) < 1ms);
    CHECK(distance(measure(drift, tick).real, expected) < 1ms);
  }
}

TEST_CASE(
    "a simulated clock drift begins when it is set, and the clocks of hosts never go backwards") {
  const weft::test::TestGuard guard("a drift begins when it is set");
  sim::explore({.seeds = 5}, [](sim::World& world) {
    std::chrono::nanoseconds shown{0};
    world.host("drifts", [&] {
      const auto began = weft::Clock::now();
      for (;;) {
        weft::this_fiber::sleep_for(1ms);
        const auto now = weft::Clock::now() - began;
        sim::check(now >= shown, "the clock goes forwards");
        shown = now;
      }
    });
    world.run_for(1s);
    world.clock_drift("drifts", 500'000);
    world.run_for(1s);
    world.clock_drift("drifts", -500'000);
    world.run_for(1s);
    CHECK(distance(shown, 3s) < 5ms);
    CHECK_THROWS_AS(world.clock_drift("drifts", -1'000'000), std::invalid_argument);
    CHECK_THROWS_AS(world.clock_drift("world", 1), std::invalid_argument);
  });
}

TEST_CASE(
    "setting a host's wall clock moves no timers and leaves the clocks of other hosts unchanged") {
  const weft::test::TestGuard guard("a wall clock that is set moves no timer");
  sim::explore({.seeds = 5}, [](sim::World& world) {
    std::chrono::nanoseconds jumped{0};
    world.host("jumps", [&] {
      const auto before = weft::WallClock::now();
      const auto began = weft::Clock::now();
      weft::this_fiber::sleep_for(10s);
      CHECK(distance(weft::Clock::now() - began, 10s) < 1ms);
      jumped = weft::WallClock::now() - before;
    });
    const auto before = weft::WallClock::now();
    world.run_for(5s);
    world.clock_jump("jumps", -24h);
    world.run_for(10s);
    CHECK(distance(jumped, 10s - 24h) < 1ms);
    CHECK(distance(weft::WallClock::now() - before, 15s) < 1ms);
  });
}

TEST_CASE("the wall clock outside a simulation is the system's clock") {
  const auto before = std::chrono::system_clock::now();
  const auto now = weft::WallClock::to_sys(weft::WallClock::now());
  CHECK(now >= before);
  CHECK(now <= std::chrono::system_clock::now());
  CHECK(weft::WallClock::to_sys(weft::WallClock::from_sys(now)) == now);
}

TEST_SUITE_END();

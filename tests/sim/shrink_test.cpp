#include <chrono>
#include <functional>
#include <string>
#include <weft/net/dial.hpp>
#include <weft/sim.hpp>

#include "tests/support/fiber_test.hpp"

TEST_SUITE_BEGIN("sim/shrink");

using namespace std::chrono_literals;
namespace net = weft::net;
namespace sim = weft::sim;

namespace {

sim::Failure failure_in(const std::function<void(sim::World&)>& body) {
  try {
    (void)sim::explore({.seeds = 100}, body);
  } catch (const sim::Failure& failure) {
    return failure;
  }
  return {0, "", ""};
}

}  // namespace

TEST_CASE("a failure is shortened to faults that make it occur sooner") {
  const weft::test::TestGuard guard("a failure is shortened to faults that make it occur sooner");
  const sim::Failure restarted = failure_in([](sim::World& world) {
    int starts = 0;
    world.host("alpha", [&] {
      if (++starts == 3) sim::fail("alpha starts a third time");
    });
    world.disturb({.restarts = 10, .within = 24h, .shortest = 1s, .longest = 1h});
    world.run_for(48h);
  });
  CHECK(restarted.reason().find("it fails after 1.0") != std::string::npos);
  CHECK(restarted.story().find("1.0") != std::string::npos);
}

TEST_CASE("a failure is shortened to latencies that make it occur sooner") {
  const weft::test::TestGuard guard("a failure is shortened to latencies");
  const sim::Failure refused = failure_in([](sim::World& world) {
    world.network().latency(1ms, 1h);
    world.host("alpha", [] {});
    if (net::dial("alpha:7").error) sim::fail("there is no listener");
  });
  CHECK(refused.reason().find("it fails after 0.002 0") != std::string::npos);
}

TEST_SUITE_END();

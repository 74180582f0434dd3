#include <chrono>
#include <functional>
#include <string>
#include <weft/go.hpp>
#include <weft/net/dial.hpp>
#include <weft/sim.hpp>

#include "tests/support/fiber_test.hpp"

TEST_SUITE_BEGIN("sim/shrink");

using namespace std::chrono_literals;
namespace net = weft::net;
namespace sim = weft::sim;

namespace {

sim::Failure failure_in(const std::function<void(sim::World&)>& body,
                        const sim::Options& options = {.seeds = 100}) {
  try {
    (void)sim::explore(options, body);
  } catch (const sim::Failure& failure) {
    return failure;
  }
  return {0, "", ""};
}

}  // namespace

TEST_CASE("shrinking finds fault times that make the failure occur sooner") {
  const weft::test::TestGuard guard("shrinking a failure finds faults that make it occur sooner");
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

TEST_CASE("shrinking finds latencies that make the failure occur sooner") {
  const weft::test::TestGuard guard("shrinking a failure finds latencies");
  const sim::Failure refused = failure_in([](sim::World& world) {
    world.network().latency(1ms, 1h);
    world.host("alpha", [] {});
    if (net::dial("alpha:7").error) sim::fail("there is no listener");
  });
  CHECK(refused.reason().find("it fails after 0.002 0") != std::string::npos);
}

TEST_CASE("shrinking a failure removes preemptions that are not needed for the failure") {
  const weft::test::TestGuard guard("a failure is shortened by earlier preemptions");
  const auto body = [](sim::World&) {
    int additions = 0;
    const auto add = [&](bool fails) {
      for (int i = 0; i < 20; ++i) {
        const int before = additions;
        sim::point();
        if (before != additions) sim::note("is interrupted");
        if (before != additions && fails) sim::fail("an addition is lost");
        ++additions;
      }
    };
    for (int i = 0; i < 20; ++i) {
      auto one = weft::spawn([&] { add(false); });
      auto other = weft::spawn([&add, i] { add(i == 19); });
      one.join();
      other.join();
    }
  };
  const auto interruptions = [&](bool shrinks) {
    const sim::Failure failure = failure_in(body, {.seeds = 100, .shrinks = shrinks});
    CHECK(failure.reason().starts_with("an addition is lost"));
    CHECK((failure.reason().find(" needed, ") != std::string::npos) == shrinks);
    std::size_t count = 0;
    for (std::size_t at = 0; (at = failure.story().find("is interrupted", at)) != std::string::npos;
         ++at) {
      ++count;
    }
    return count;
  };
  const std::size_t before = interruptions(false);
  CHECK(before > 1);
  CHECK(interruptions(true) < before);
}

TEST_SUITE_END();

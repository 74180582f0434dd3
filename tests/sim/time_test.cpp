#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <weft/blocking.hpp>
#include <weft/blocking_group.hpp>
#include <weft/channel.hpp>
#include <weft/clock.hpp>
#include <weft/go.hpp>
#include <weft/mutex.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/pool.hpp>
#include <weft/select.hpp>
#include <weft/sim.hpp>
#include <weft/this_fiber.hpp>
#include <weft/timer.hpp>

#include "tests/support/fiber_test.hpp"

TEST_SUITE_BEGIN("sim/time");

using namespace std::chrono_literals;
namespace sim = weft::sim;

namespace {

// Returns the reason for the failure, or an empty text if no run fails.
std::string reason_of(const std::function<void()>& body, const sim::Options& options = {}) {
  try {
    sim::run(body, options);
  } catch (const sim::Failure& failure) {
    return failure.reason();
  }
  return {};
}

}  // namespace

TEST_CASE("a one-day sleep takes one day of virtual time") {
  const weft::test::TestGuard guard("a sleep of a day takes a virtual day");
  std::chrono::nanoseconds slept{0};
  const auto began = std::chrono::steady_clock::now();
  sim::run([&] {
    const auto before = weft::Clock::now();
    weft::this_fiber::sleep_for(24h);
    slept = weft::Clock::now() - before;
  });
  CHECK(slept >= 24h);
  CHECK(slept < 24h + 1ms);
  CHECK(std::chrono::steady_clock::now() - began < 1h);
}

TEST_CASE("deadlines, tickers and timed waits use virtual time in a simulation") {
  const weft::test::TestGuard guard("deadlines, tickers and timed waits are virtual");
  sim::run([] {
    weft::Channel<int> channel;
    std::optional<int> value;
    const auto before = weft::Clock::now();
    CHECK(channel.receive_until(value, 1h) == weft::ChannelStatus::timed_out);
    CHECK(weft::Clock::now() - before >= 1h);
    CHECK(weft::Deadline::at(weft::Clock::now() + 1h) > weft::Deadline::after(59min));
    CHECK(!weft::Deadline::at(std::chrono::steady_clock::now() + 1h).passed());
    weft::Ticker ticker(10min);
    for (int i = 0; i < 6; ++i) ticker.wait();
    CHECK(weft::Clock::now() - before >= 2h);
    CHECK(weft::Clock::now() - before < 2h + 1s);
  });
}

TEST_CASE("a plain thread outside a simulation uses the real clock while the simulation runs") {
  const weft::test::TestGuard guard("a plain thread keeps the real clock");
  sim::run([] {
    weft::this_fiber::sleep_for(1000h);
    std::int64_t outside = 0;
    bool is_simulated = true;
    std::thread([&] {
      outside = weft::Deadline::now_nanoseconds();
      is_simulated = sim::is_simulated();
    }).join();
    CHECK(!is_simulated);
    CHECK(sim::is_simulated());
    const auto real = std::chrono::steady_clock::now().time_since_epoch();
    CHECK(std::chrono::nanoseconds(outside) <= real);
    CHECK(std::chrono::nanoseconds(outside) > real - 1h);
  });
  CHECK(!sim::is_simulated());
}

TEST_CASE("sim::settle() returns when every other fiber waits for a timer or for the caller") {
  const weft::test::TestGuard guard("settle() returns when all others wait");
  sim::explore({.seeds = 50}, [](sim::World&) {
    weft::Channel<int> requests;
    int done = 0;
    auto worker = weft::spawn([&] {
      std::optional<int> request;
      while (requests.receive_until(request, {}) == weft::ChannelStatus::ok) {
        for (int i = 0; i < *request; ++i) weft::this_fiber::yield();
        done += *request;
      }
    });
    const auto before = weft::Clock::now();
    CHECK(requests.send(5));
    sim::settle();
    CHECK(done == 5);
    CHECK(requests.send(7));
    sim::settle();
    CHECK(done == 12);
    CHECK(weft::Clock::now() - before < 1ms);
    requests.close();
    worker.join();
  });
}

TEST_CASE("a simulation reports a deadlock with the call stacks of all fibers") {
  const weft::test::TestGuard guard("a deadlock is found");
  const std::string reason = reason_of([] {
    weft::Channel<int> nobody_sends;
    auto waits = weft::spawn([&] { (void)nobody_sends.receive(); });
    waits.join();
  });
  CHECK(reason.starts_with("deadlock: "));
  CHECK(reason.find("channel receive") != std::string::npos);
  CHECK(reason.find("join") != std::string::npos);
}

TEST_CASE("a fiber that still exists at the end of a simulation's body is reported as a leak") {
  const weft::test::TestGuard guard("a fiber that is left at the end of the body is a leak");
  CHECK(reason_of([] {
          weft::go([] { weft::this_fiber::sleep_for(1h); });
        }).starts_with("1 fibers that the body has spawned are left"));
  CHECK(reason_of([] { weft::go([] { weft::this_fiber::sleep_for(1s); }); }).empty());
}

TEST_CASE("a socket that is open after the end of a simulation's body is reported as a leak") {
  const weft::test::TestGuard guard("a socket that is open after the end is a leak");
  const std::string found = reason_of([] {
    using weft::net::TcpListener;
    auto listener = TcpListener::listen(weft::net::Address::any_v4(80));
    CHECK(!listener.error);
    (void)std::make_unique<TcpListener>(std::move(listener.value)).release();
  });
  CHECK(found.starts_with("1 descriptors that the body has opened are open after its end"));
}

TEST_CASE("a fiber or a socket that remains at the end of a simulated host is reported as a leak") {
  const weft::test::TestGuard guard("a fiber or a socket that is left at the end of a host");
  const auto end_of = [](const std::function<void()>& main) {
    try {
      sim::explore({.seeds = 1}, [&](sim::World& world) {
        world.host("node", main);
        world.check_end("node");
        world.crash("node");
        world.check_end("node");
      });
    } catch (const sim::Failure& failure) {
      return failure.reason();
    }
    return std::string();
  };
  CHECK(end_of([] { weft::go([] { weft::this_fiber::sleep_for(1s); }); }).empty());
  CHECK(end_of([] {
          weft::go([] { weft::this_fiber::sleep_for(1h); });
        }).starts_with("1 fibers that 'node' has spawned are left after its end"));
  CHECK(end_of([] {
          using weft::net::TcpListener;
          auto listener = TcpListener::listen(weft::net::Address::any_v4(80));
          (void)std::make_unique<TcpListener>(std::move(listener.value)).release();
        }).starts_with("1 descriptors that 'node' has opened are open after its end"));
}

TEST_CASE(
    "an open socket of a simulated host without fibers is reported as a leak when the simulation "
    "ends") {
  const weft::test::TestGuard guard("a socket of a host whose fibers have ended is a leak");
  const auto end_of_world = [](bool goes_on, bool crashes) {
    try {
      sim::explore({.seeds = 1, .shrinks = false}, [=](sim::World& world) {
        world.host("node", [goes_on] {
          using weft::net::TcpListener;
          auto listener = TcpListener::listen(weft::net::Address::any_v4(80));
          (void)std::make_unique<TcpListener>(std::move(listener.value)).release();
          if (goes_on) weft::this_fiber::sleep_for(24h);
        });
        world.run_for(1s);
        if (crashes) world.crash("node");
      });
    } catch (const sim::Failure& failure) {
      return failure.reason();
    }
    return std::string();
  };
  CHECK(end_of_world(false, false) ==
        "1 descriptors that 'node' has opened are open after its end");
  CHECK(end_of_world(true, false).empty());
  CHECK(end_of_world(false, true).empty());
}

TEST_CASE("a simulation fails when its body or a detached fiber throws an exception") {
  const weft::test::TestGuard guard("exceptions fail the run");
  CHECK(reason_of([] {
          throw std::runtime_error("of the body");
        }).starts_with("the body threw: of the body"));
  CHECK(reason_of([] {
          weft::go([] { throw std::runtime_error("of a fiber"); });
          weft::this_fiber::sleep_for(1s);
        }).starts_with("an exception left a fiber of 'world': of a fiber"));
}

TEST_CASE("a simulation that never ends fails when max_turns or time_limit is reached") {
  const weft::test::TestGuard guard("a body that never ends meets the limits");
  const sim::Options options{.time_limit = 1h, .max_turns = 10'000, .shrinks = false};
  CHECK(reason_of(
            [] {
              auto other = weft::spawn([] {
                for (;;) weft::this_fiber::yield();
              });
              for (;;) weft::this_fiber::yield();
            },
            options)
            .find("Options::max_turns") != std::string::npos);
  CHECK(reason_of(
            [] {
              for (;;) weft::this_fiber::sleep_for(1min);
            },
            options)
            .find("Options::time_limit") != std::string::npos);
}

TEST_CASE("virtual time advances while a simulated fiber yields in a loop until a deadline") {
  const weft::test::TestGuard guard("a loop that waits for time makes progress");
  sim::run([] {
    const weft::Deadline limit = weft::Deadline::after(10ms);
    auto other = weft::spawn([] { weft::this_fiber::sleep_for(1ms); });
    while (!limit.passed()) weft::this_fiber::yield();
    other.join();
  });
}

TEST_CASE("blocking() and BlockingGroup make their calls on the calling thread in a simulation") {
  const weft::test::TestGuard guard("blocking calls run in place");
  sim::run([] {
    const auto here = std::this_thread::get_id();
    CHECK(weft::blocking([] { return std::this_thread::get_id(); }) == here);
    weft::BlockingGroup group({.name = "test"});
    const auto [there, error] = group.run([] { return std::this_thread::get_id(); });
    CHECK(!error);
    CHECK(there == here);
  });
}

TEST_CASE("idle workers of a pool retire after one day of virtual idle time") {
  const weft::test::TestGuard guard("idle workers of a pool retire after a day");
  sim::explore({.seeds = 10}, [](sim::World& world) {
    weft::FiberPool pool({.capacity = 4, .idle_timeout = 24h});
    for (int i = 0; i < 4; ++i) {
      CHECK(pool.submit([] { weft::this_fiber::sleep_for(1s); }));
    }
    world.run_for(23h);
    CHECK(pool.stats().live == 4);
    world.run_for(26h);
    CHECK(pool.stats().live == 0);
  });
}

TEST_CASE("a simulation refuses to start inside another simulation") {
  const weft::test::TestGuard guard("a simulation inside of a simulation is refused");
  sim::run([] { CHECK_THROWS_AS(sim::run([] {}), std::logic_error); });
  CHECK_THROWS_AS(sim::settle(), std::logic_error);
}

TEST_SUITE_END();

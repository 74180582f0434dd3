#include <weft/single_flight.hpp>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>
#include <weft/context.hpp>
#include <weft/go.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/sync/callers.hpp"

namespace {

using namespace std::chrono_literals;
using weft::Event;
using weft::SingleFlight;
using weft::test::await_parked;

using Flights = SingleFlight<int, std::string>;

TEST_SUITE_BEGIN("sync/single_flight");

FIBER_TEST_CASE("concurrent calls for a key share one run, and a later call begins another run") {
  Flights flights;
  Event open;
  std::atomic<int> runs{0};
  const auto load = [&] {
    open.wait();
    return "run " + std::to_string(++runs);
  };
  std::vector<weft::JoinHandle<std::string>> callers;
  for (int i = 0; i < 5; ++i) {
    callers.push_back(weft::spawn([&] { return flights.run(7, load); }));
  }
  // The callers and the fiber of the run are parked.
  await_parked(runtime, "event", 6);
  auto other = weft::spawn([&] { return flights.run(8, [] { return std::string("other"); }); });
  CHECK(other.join() == "other");
  open.set();
  for (auto& caller : callers) CHECK(caller.join() == "run 1");
  CHECK(flights.run(7, load) == "run 2");
}

FIBER_TEST_CASE("all callers that share a run get the exception of the run") {
  Flights flights;
  Event open;
  const auto fail = [&]() -> std::string {
    open.wait();
    throw std::out_of_range("no");
  };
  std::vector<weft::JoinHandle<std::string>> callers;
  for (int i = 0; i < 3; ++i) {
    callers.push_back(weft::spawn([&] { return flights.run(7, fail); }));
  }
  await_parked(runtime, "event", 4);
  open.set();
  for (auto& caller : callers) CHECK_THROWS_AS((void)caller.join(), std::out_of_range);
  CHECK(flights.run(7, [] { return std::string("good"); }) == "good");
}

FIBER_TEST_CASE(
    "a SingleFlight's run continues for the remaining callers when one caller, even the first, "
    "gives up") {
  Flights flights;
  Event open;
  const auto load = [&] {
    open.wait();
    // The cancelled context does not include the run.
    return std::string(weft::this_fiber::context() == nullptr ? "free" : "bound");
  };
  weft::Context context;
  auto first = weft::spawn([&] {
    const weft::ContextScope scope(context);
    return flights.run_until(7, context, load);
  });
  await_parked(runtime, "event", 2);
  auto second = weft::spawn([&] { return flights.run(7, load); });
  await_parked(runtime, "event", 3);
  CHECK(flights.run_until(7, 100us, load) == std::nullopt);
  context.cancel();
  CHECK(first.join() == std::nullopt);
  open.set();
  CHECK(second.join() == "free");
}

FIBER_TEST_CASE(
    "a call after forget() begins a new run, and the old run's callers get the old result") {
  Flights flights;
  Event open;
  auto old = weft::spawn([&] {
    return flights.run(7, [&] {
      open.wait();
      return std::string("old");
    });
  });
  await_parked(runtime, "event", 2);
  CHECK(flights.forget(7));
  CHECK_FALSE(flights.forget(7));
  CHECK(flights.run(7, [] { return std::string("new"); }) == "new");
  open.set();
  CHECK(old.join() == "old");
}

FIBER_TEST_CASE("the destructor of a SingleFlight waits for a run that all callers have left") {
  std::atomic<bool> has_ended{false};
  Event open;
  auto opener = weft::spawn([&] {
    await_parked(runtime, "wait group", 1);
    open.set();
  });
  {
    Flights flights;
    CHECK(flights.run_until(7, weft::Deadline::past(), [&] {
      open.wait();
      has_ended = true;
      return std::string();
    }) == std::nullopt);
    // The run has begun, so the destructor does not run it on this stack, where a dump would not
    // list it.
    await_parked(runtime, "event", 1);
  }
  CHECK(has_ended);
  opener.join();
}

THREAD_TEST_CASE(
    "fibers and plain threads share a run, and each caller sees the writes of the run") {
  SingleFlight<int, int> flights;
  std::vector<int> news(3);  // Not atomic: the end of a run orders it.
  std::atomic<int> busy[3] = {};
  weft::test::run_mixed(6, 2, [&](int) {
    for (int i = 0; i < 30; ++i) {
      const int key = i % 3;
      const auto place = static_cast<std::size_t>(key);
      const int result = flights.run(key, [&, place] {
        CHECK(++busy[place] == 1);
        const int next = ++news[place];
        weft::this_fiber::yield();
        --busy[place];
        return next;
      });
      CHECK(result > 0);
    }
  });
}

TEST_SUITE_END();

}  // namespace

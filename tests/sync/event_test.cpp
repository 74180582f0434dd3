#include <weft/event.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"
#include "tests/sync/callers.hpp"

namespace {

using namespace std::chrono_literals;
using weft::Event;
using weft::test::await_parked;
using weft::test::kSlowdown;
using weft::test::run_mixed;

TEST_SUITE_BEGIN("sync/event");

THREAD_TEST_CASE(
    "an Event is not set until set() is called, and stays set until reset() is called") {
  Event event;
  CHECK(!event.is_set_hint());
  CHECK(!event.wait_for(10us));
  event.set();
  event.set();
  CHECK(event.is_set_hint());
  event.wait();
  CHECK(event.wait_until(weft::Deadline::past()));
  weft::spawn([&] { event.wait(); }).join();
  event.reset();
  CHECK(!event.is_set_hint());
  CHECK(!weft::spawn([&] { return event.wait_for(10us); }).join());
}

THREAD_TEST_CASE(
    "setting an event wakes all waiters, which then see the writes made before set()") {
  Event event;
  int news = 0;  // Not atomic: the event orders it.
  auto setter = weft::spawn([&] {
    await_parked(runtime, "event", 5);
    news = 7;
    event.set();
  });
  run_mixed(5, 2, [&](int) {
    event.wait();
    CHECK(news == 7);
  });
}

FIBER_TEST_CASE("a woken waiter continues even if the event is reset before the waiter runs") {
  Event event;
  auto waiter = weft::spawn([&] { event.wait(); });
  await_parked(runtime, "event", 1);
  event.set();
  event.reset();
  waiter.join();
  CHECK(!event.is_set_hint());
}

THREAD_TEST_CASE("a timed wait for an event gives up at its deadline, not before") {
  Event event;
  const auto attempt = [&] {
    for (const auto span : {0us, 1us, 300us}) {
      const auto deadline = weft::Deadline::after(span);
      CHECK(!event.wait_until(deadline));
      CHECK(deadline.passed());
    }
  };
  attempt();
  weft::spawn(attempt).join();
  auto waiting = weft::spawn([&] { return event.wait_for(1h); });
  event.set();
  CHECK(waiting.join());
}

THREAD_TEST_CASE("an event may be destroyed as soon as every wait for the event has returned") {
  const int rounds = 3'000 / static_cast<int>(kSlowdown);
  const auto use_and_destroy = [&] {
    weft::test::Random random(1);
    for (int round = 0; round < rounds; ++round) {
      auto event = std::make_unique<Event>();
      weft::go([&event = *event] { event.set(); });
      while (!event->wait_for(std::chrono::microseconds(random.below(3)))) {
        if (random.one_in(2)) {
          event->wait();
          break;
        }
      }
      event.reset();
    }
  };
  weft::spawn(use_and_destroy).join();
  use_and_destroy();
}

TEST_SUITE_END();

}  // namespace

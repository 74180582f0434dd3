#include <weft/timer.hpp>

#include <atomic>
#include <memory>
#include <stop_token>
#include <vector>
#include <weft/channel.hpp>
#include <weft/select.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"
#include "tests/support/sim_test.hpp"

TEST_SUITE_BEGIN("sync/timer");

using namespace std::chrono_literals;
using weft::Channel;
using weft::Deadline;
using weft::Ticker;
using weft::Timer;

SIM_TEST_CASE("a timer expires once, and not before its time") {
  for (const bool tries : {false, true}) {
    const auto start = world.now();
    Timer timer(3h);
    if (tries) {
      while (!timer.try_wait()) world.run_for(1min);
    } else {
      timer.wait();
    }
    CHECK(world.now() - start >= 3h);
    CHECK(world.now() - start <= 3h + 2min);
    CHECK_FALSE(timer.try_wait());
    CHECK_FALSE(timer.wait_until(Deadline::after(24h)));
  }
}

FIBER_TEST_CASE("a timer that was stopped or reset does not expire at its original time") {
  Timer timer(Deadline::past());
  CHECK(timer.stop());
  CHECK_FALSE(timer.stop());
  CHECK_FALSE(timer.try_wait());
  CHECK_FALSE(timer.reset(Deadline::past()));
  CHECK(timer.reset(1h));
  CHECK_FALSE(timer.try_wait());
  CHECK(timer.reset(Deadline::past()));
  CHECK(timer.try_wait());
  CHECK_FALSE(timer.stop());
}

SIM_TEST_CASE(
    "a waiter returns at the new time when its timer is reset to an earlier or later time") {
  Timer timer(1h);
  auto waiting = weft::spawn([&] { timer.wait(); });
  auto impatient = weft::spawn([&] { return timer.wait_until(Deadline::after(2min)); });
  CHECK_FALSE(impatient.join());
  CHECK_FALSE(waiting.done());
  CHECK(timer.reset(1min));
  waiting.join();
  CHECK(world.now() >= 3min);
  CHECK(world.now() < 3min + 1s);

  CHECK_FALSE(timer.reset(1h));
  CHECK(timer.reset(5min));
  auto later = weft::spawn([&] {
    timer.wait();
    return world.now();
  });
  weft::sim::settle();
  const auto moved = world.now();
  CHECK(timer.reset(20min));
  const auto let_through = later.join();
  CHECK(let_through - moved >= 20min);
  CHECK(let_through - moved < 20min + 1s);
}

SIM_TEST_CASE("one expiry of a timer releases only one of several waiting callers") {
  Timer timer(1h);
  std::stop_source source;
  std::atomic<int> through{0};
  std::vector<weft::JoinHandle<void>> callers;
  for (int i = 0; i < 5; ++i) {
    callers.push_back(weft::spawn([&] {
      if (timer.wait_until(source.get_token())) ++through;
    }));
  }
  world.run_for(24h);
  CHECK(through == 1);
  source.request_stop();
  for (auto& caller : callers) caller.join();
  CHECK(through == 1);
}

SIM_TEST_CASE("a ticker keeps its interval and stores at most one tick for a late waiter") {
  CHECK_THROWS_AS(Ticker(0ns), std::invalid_argument);
  const auto start = world.now();
  Ticker ticker(2min);
  for (int i = 1; i <= 3; ++i) {
    ticker.wait();
    CHECK(world.now() - start >= i * 2min);
    CHECK(world.now() - start < i * 2min + 1s);
  }
  world.run_for(9min);
  CHECK(ticker.try_wait());
  CHECK_FALSE(ticker.try_wait());
  ticker.reset(1h);
  CHECK_FALSE(ticker.try_wait());
  ticker.reset(1min);
  ticker.wait();
  ticker.stop();
  CHECK_FALSE(ticker.wait_until(Deadline::after(2min)));
}

SIM_TEST_CASE("a select can wait for timers and tickers") {
  Channel<int> channel;
  Timer timer(1h);
  Ticker ticker(10min);
  int ticks = 0;
  while (ticks < 3) {
    weft::select(weft::on_receive(channel, [](auto) {}), weft::on_tick(ticker, [&] { ++ticks; }),
                 weft::on_expiry(timer, [] { FAIL_CHECK("an hour has passed"); }));
  }
  ticker.stop();
  auto mover = weft::spawn([&] { timer.reset(2h); });
  CHECK(weft::select(weft::on_tick(ticker), weft::on_expiry(timer)) == 1);
  CHECK(weft::select(weft::on_expiry(timer), weft::otherwise()) == 1);
  mover.join();
}

SIM_TEST_CASE("a delayed call is made once, in a new fiber") {
  Channel<std::uint64_t> ids;
  auto call = weft::call_after(48h, [&] { (void)ids.send(weft::this_fiber::id()); });
  const std::uint64_t id = ids.receive().value_or(0);
  CHECK(world.now() >= 48h);
  CHECK(world.now() < 48h + 1s);
  CHECK(id != 0);
  CHECK(id != weft::this_fiber::id());
  CHECK_FALSE(call.stop());
}

FIBER_TEST_CASE("a delayed call that is stopped is never made, and its callable is destroyed") {
  auto resource = std::make_shared<int>(1);
  std::weak_ptr<int> watch = resource;
  auto call = weft::call_after(1h, [held = std::move(resource)] { FAIL_CHECK("stopped"); });
  CHECK(call.stop());
  CHECK_FALSE(call.stop());
  while (!watch.expired()) weft::this_fiber::yield();
  // Dropping the handle does not cancel the call.
  weft::WaitGroup group;
  group.add();
  (void)weft::call_after(1ms, [&] { group.done(); });
  group.wait();
  CHECK_FALSE(weft::DelayedCall().stop());
}

THREAD_TEST_CASE("a plain thread can wait for timers and schedule delayed calls") {
  Timer timer(2ms);
  timer.wait();
  weft::WaitGroup group;
  group.add(2);
  auto first = weft::call_after(1ms, [&] { group.done(); });
  (void)weft::call_at(Deadline::past(), [&] { group.done(); });
  group.wait();
  auto never = weft::call_after(1h, [] { FAIL_CHECK("stopped"); });
  CHECK(never.stop());
  std::stop_source source;
  Ticker ticker(1h);
  CHECK_FALSE(ticker.wait_until(Deadline::after(1ms)));
  weft::go([&] { source.request_stop(); });
  CHECK_FALSE(ticker.wait_until(source.get_token()));
  CHECK_FALSE(timer.wait_until(source.get_token()));
}

FIBER_TEST_CASE(
    "a delayed call is either made or stopped when a stop races with the end of its 0 to 2 us "
    "delay") {
  const int rounds = static_cast<int>(20000 / weft::test::kSlowdown);
  weft::test::Random random;
  std::atomic<int> made{0};
  int stopped = 0;
  for (int i = 0; i < rounds; ++i) {
    auto call = weft::call_after(std::chrono::nanoseconds(random.below(2000)), [&] { ++made; });
    if (random.one_in(2)) weft::this_fiber::yield();
    if (call.stop()) ++stopped;
  }
  while (made + stopped < rounds) weft::this_fiber::yield();
  CHECK(made + stopped == rounds);
}

FIBER_TEST_CASE(
    "every one of a hundred thousand pending delayed calls is made unless it is stopped") {
  const int count = static_cast<int>(100000 / weft::test::kSlowdown);
  std::vector<weft::DelayedCall> calls;
  calls.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    calls.push_back(weft::call_after(1h, [] { FAIL_CHECK("stopped"); }));
  }
  for (auto& call : calls) CHECK(call.stop());
  weft::WaitGroup group;
  group.add(static_cast<std::uint64_t>(count));
  for (int i = 0; i < count; ++i) {
    (void)weft::call_after(std::chrono::microseconds(i % 5000), [&] { group.done(); });
  }
  group.wait();
}

TEST_SUITE_END();

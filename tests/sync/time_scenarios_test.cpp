#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>
#include <weft/channel.hpp>
#include <weft/clock.hpp>
#include <weft/pacer.hpp>
#include <weft/select.hpp>
#include <weft/task_group.hpp>
#include <weft/this_fiber.hpp>
#include <weft/timer.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"
#include "tests/support/sim_test.hpp"

TEST_SUITE_BEGIN("sync/time_scenarios");

using namespace std::chrono_literals;
using weft::Channel;
using weft::Deadline;
using weft::Ticker;
using weft::Timer;

SIM_TEST_CASE("delayed calls that are set in any order are all made, and none is made early") {
  weft::WaitGroup group;
  group.add(5);
  const auto start = weft::Clock::now();
  for (const int place : {4, 2, 5, 1, 3}) {
    (void)weft::call_at(Deadline::at(start + place * 3h), [&group, start, place] {
      CHECK(weft::Clock::now() - start >= place * 3h);
      CHECK(weft::Clock::now() - start < place * 3h + 1s);
      group.done();
    });
  }
  group.wait();
  CHECK(weft::Clock::now() - start >= 15h);
}

FIBER_TEST_CASE("delayed calls may form a long chain in which each call schedules the next") {
  Channel<int> done;
  std::function<void(int)> again = [&](int left) {
    if (left == 0) {
      (void)done.send(1);
    } else {
      (void)weft::call_after(10us, [&again, left] { again(left - 1); });
    }
  };
  again(30);
  CHECK(done.receive() == 1);
}

FIBER_TEST_CASE("delayed calls are made while other fibers yield constantly") {
  std::atomic<bool> stop{false};
  weft::TaskGroup busy;
  for (unsigned i = 0; i < 2 * runtime.workers(); ++i) {
    busy.spawn([&] {
      while (!stop) weft::this_fiber::yield();
    });
  }
  for (int i = 0; i < 20; ++i) {
    Channel<int> made(1);
    (void)weft::call_after(50us, [&] { (void)made.send(1); });
    CHECK(made.receive() == 1);
  }
  stop = true;
  busy.join();
}

FIBER_TEST_CASE("a sleep of zero or negative time does not wait, and lets other fibers run") {
  std::atomic<int> turns{0};
  weft::TaskGroup group;
  for (int fiber = 0; fiber < 10; ++fiber) {
    group.spawn([&] {
      for (int i = 0; i < 100; ++i) {
        weft::this_fiber::sleep_for(0ns);
        weft::this_fiber::sleep_for(-5h);
        weft::this_fiber::sleep_until(Deadline::past());
        ++turns;
        weft::this_fiber::yield();
      }
    });
  }
  group.join();
  CHECK(turns == 1000);
}

SIM_TEST_CASE("a delayed call whose time is too late to represent is never made") {
  Timer timer(std::chrono::hours::max());
  CHECK_FALSE(timer.wait_until(Deadline::after(24h * 30)));
  CHECK(weft::call_after(std::chrono::years(100000), [] { FAIL_CHECK("early"); }).stop());
  Ticker ticker(std::chrono::nanoseconds::max());
  CHECK_FALSE(ticker.wait_until(Deadline::after(24h * 30)));
  Ticker in_centuries(std::chrono::years(1000));
  CHECK_FALSE(in_centuries.wait_until(Deadline::after(24h * 30)));
  in_centuries.reset(std::chrono::hours::max());
  CHECK_FALSE(in_centuries.wait_until(Deadline::after(24h * 30)));
  weft::Pacer pacer(std::chrono::years(1000));
  pacer.next();
  CHECK_FALSE(pacer.next_for(24h * 30));
  Channel<int> channel;
  std::optional<int> value;
  auto sender = weft::spawn([&] { (void)channel.send(1); });
  CHECK(channel.receive_until(value, Deadline::after(std::chrono::hours::max())) ==
        weft::ChannelStatus::ok);
  sender.join();
}

FIBER_TEST_CASE(
    "a timer that is set and stopped concurrently expires at most once each time it is set") {
  const int rounds = static_cast<int>(2000 / weft::test::kSlowdown);
  Timer timer;
  std::atomic<int> set{0};
  std::atomic<int> went_off{0};
  weft::TaskGroup group;
  for (std::uint64_t caller = 0; caller < 4; ++caller) {
    group.spawn([&, caller] {
      weft::test::Random random(caller);
      for (int i = 0; i < rounds; ++i) {
        // The test counts the timer first, so that no timer expires before it is counted.
        ++set;
        timer.reset(std::chrono::nanoseconds(random.below(2000)));
        if (random.one_in(3)) timer.stop();
        if (timer.wait_until(Deadline::after(std::chrono::nanoseconds(random.below(2000))))) {
          CHECK(++went_off <= set);
        }
      }
    });
  }
  group.join();
  CHECK(went_off <= set);
}

FIBER_TEST_CASE("a timer can be reset immediately after a select has chosen another case") {
  Timer timer;
  Channel<int> channel(1);
  for (int i = 0; i < 200; ++i) {
    timer.reset(i % 2 == 0 ? Deadline::past() : Deadline::after(1h));
    int value = 1;
    if (i % 3 == 0) CHECK(channel.try_send(value) == weft::ChannelStatus::ok);
    const auto chosen = weft::select(weft::on_expiry(timer), weft::on_receive(channel, [](auto) {}),
                                     weft::otherwise());
    CHECK(chosen == (i % 6 == 0 ? chosen : i % 2 == 0 ? 0U : i % 3 == 0 ? 1U : 2U));
    CHECK(chosen != (i % 6 == 0 ? 2U : 3U));
    std::optional<int> rest;
    (void)channel.try_receive(rest);
    timer.stop();
    CHECK_FALSE(timer.try_wait());
  }
}

FIBER_TEST_CASE("a ticker whose ticks are not read can be destroyed") {
  for (int i = 0; i < 50; ++i) {
    Ticker ticker(std::chrono::microseconds(1 + i));
    if (i % 2 == 0) weft::this_fiber::yield();
    if (i % 3 == 0) ticker.stop();
  }
  Ticker ticker(1ms);
  ticker.wait();
  ticker.stop();
  CHECK_FALSE(ticker.try_wait());
  ticker.stop();
  CHECK_THROWS_AS(ticker.reset(-1ns), std::invalid_argument);
}

TEST_SUITE_END();

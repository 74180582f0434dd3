#include <weft/latest_value.hpp>

#include <chrono>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>
#include <weft/channel.hpp>
#include <weft/select.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"
#include "tests/sync/callers.hpp"

namespace {

using namespace std::chrono_literals;
using weft::Deadline;
using weft::LatestValue;
using weft::test::await_parked;
using weft::test::kSlowdown;
using weft::test::run_mixed;

TEST_SUITE_BEGIN("sync/latest_value");

FIBER_TEST_CASE("a LatestValue can be read at any time, and a wait ends when a value is set") {
  LatestValue<std::string> value("first");
  std::uint64_t seen = 0;
  CHECK(value.get() == "first");
  CHECK(value.wait_changed(seen) == "first");
  CHECK(seen == 1);
  auto waiting = weft::spawn([&] { return value.wait_changed(seen); });
  await_parked(runtime, "event", 1);
  value.set("second");
  CHECK(waiting.join() == "second");
  CHECK(seen == 2);
  value.set("third");
  value.set("fourth");
  CHECK(value.wait_changed(seen) == "fourth");
  CHECK(seen == 4);
  CHECK(value.get(seen) == "fourth");
}

FIBER_TEST_CASE(
    "a deadline or a stop request ends a wait for a LatestValue's next value without changing the "
    "seen version") {
  LatestValue<int> value(1);
  std::uint64_t seen = 1;
  CHECK(value.wait_changed_until(seen, Deadline::past()) == std::nullopt);
  CHECK(value.wait_changed_until(seen, 100us) == std::nullopt);
  std::stop_source stop;
  auto waiting = weft::spawn([&] { return value.wait_changed_until(seen, stop.get_token()); });
  await_parked(runtime, "event", 1);
  stop.request_stop();
  CHECK(waiting.join() == std::nullopt);
  CHECK(seen == 1);
  value.set(2);
  CHECK(value.wait_changed_until(seen, stop.get_token()) == 2);
  const auto is_three = [](int now) { return now == 3; };
  CHECK(value.wait_for(100us, is_three) == std::nullopt);
  CHECK(value.wait_until(stop.get_token(), is_three) == std::nullopt);
}

FIBER_TEST_CASE("a wait for a condition ends when a value that meets the condition is set") {
  LatestValue<int> value(0);
  auto waiting = weft::spawn([&] { return value.wait([](int now) { return now >= 3; }); });
  await_parked(runtime, "event", 1);
  value.set(1);
  value.set(5);
  CHECK(waiting.join() == 5);
  CHECK(value.wait([](int now) { return now == 5; }) == 5);
  CHECK_THROWS_AS((void)value.wait([](int) -> bool { throw std::runtime_error("no"); }),
                  std::runtime_error);
}

FIBER_TEST_CASE(
    "waiters of a LatestValue see the writes that precede each set, and never an older value") {
  const int count = 300 / static_cast<int>(kSlowdown) + 5;
  LatestValue<int> value(0);
  std::vector<int> news(static_cast<std::size_t>(count) + 1);  // Not atomic: the value orders it.
  auto setter = weft::spawn([&] {
    for (int i = 1; i <= count; ++i) {
      news[static_cast<std::size_t>(i)] = i;
      value.set(i);
      if (i % 16 == 0) weft::this_fiber::yield();
    }
  });
  run_mixed(6, 2, [&](int) {
    std::uint64_t seen = 0;
    for (int last = -1; last < count;) {
      const int now = value.wait_changed(seen);
      CHECK(now > last);
      CHECK(news[static_cast<std::size_t>(now)] == now);
      last = now;
    }
  });
  setter.join();
}

FIBER_TEST_CASE("setting a LatestValue wakes hundreds of waiting callers") {
  const int count = 300 / static_cast<int>(kSlowdown) + 1;
  LatestValue<int> value(0);
  std::vector<weft::JoinHandle<int>> waiting;
  for (int i = 0; i < count; ++i) {
    waiting.push_back(weft::spawn([&value] {
      std::uint64_t seen = 1;
      return value.wait_changed(seen);
    }));
  }
  await_parked(static_cast<std::uint64_t>(count));
  value.set(7);
  for (auto& waiter : waiting) CHECK(waiter.join() == 7);
}

FIBER_TEST_CASE("a change to a LatestValue ends a select that waits for the change") {
  LatestValue<std::string> value("first");
  weft::Channel<int> channel;
  std::uint64_t seen = 1;
  std::string now;
  const auto take = [&](std::string next) { now = std::move(next); };
  CHECK(weft::select(weft::on_change(value, seen, take), weft::otherwise()) == 1);
  auto selecting = weft::spawn([&] {
    return weft::select(weft::on_receive(channel, [](std::optional<int>) {}),
                        weft::on_change(value, seen, take));
  });
  await_parked(runtime, "select", 1);
  value.set("second");
  CHECK(selecting.join() == 1);
  CHECK(now == "second");
  CHECK(seen == 2);
  value.set("third");
  CHECK(weft::select(weft::on_change(value, seen, take)) == 0);
  CHECK(now == "third");
}

TEST_SUITE_END();

}  // namespace

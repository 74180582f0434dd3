#include <weft/blocking_group.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <vector>
#include <weft/blocking.hpp>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"

using namespace weft;
using namespace std::chrono_literals;

TEST_SUITE_BEGIN("runtime/blocking_group");

FIBER_TEST_CASE("a call of a BlockingGroup runs on a thread of the group and returns its result") {
  BlockingGroup group({.name = "test"});
  const auto home = std::this_thread::get_id();
  const auto result = group.run([] { return std::make_unique<int>(42); });
  CHECK(!result.error);
  CHECK(*result.value == 42);
  CHECK(group.run([] { return std::this_thread::get_id(); }).value != home);
  CHECK(!group.run([] {}).error);
  bool thrown = false;
  try {
    (void)group.run([]() -> int { throw std::runtime_error("no"); });
  } catch (const std::runtime_error&) {
    thrown = true;
  }
  CHECK(thrown);
  CHECK(group.stats().finished == 4);
}

FIBER_TEST_CASE("a BlockingGroup never runs more calls at once than it has threads") {
  BlockingGroup group({.max_threads = 3});
  std::atomic<int> now{0};
  std::atomic<int> most{0};
  std::vector<JoinHandle<void>> callers;
  for (int i = 0; i < 40; ++i) {
    callers.push_back(spawn([&] {
      const auto done = group.run([&] {
        const int running = ++now;
        int before = most;
        while (before < running && !most.compare_exchange_weak(before, running)) {
        }
        std::this_thread::sleep_for(100us);
        --now;
      });
      CHECK(!done.error);
    }));
  }
  for (auto& caller : callers) caller.join();
  CHECK(most <= 3);
}

FIBER_TEST_CASE(
    "a deadline or a stop request ends the wait for a hanging call, and other calls continue") {
  Event hangs_on;
  std::atomic<bool> ran{false};
  {
    BlockingGroup dead({.max_threads = 1});
    std::atomic<bool> hangs{false};
    // Repeats the call if its caller gave up before the call began.
    while (!hangs) {
      const auto hang = [&] {
        hangs = true;
        hangs_on.wait();
        return 1;
      };
      CHECK(dead.run(hang, Deadline::after(5ms)).error == Errc::timed_out);
    }
    const BlockingGroupStats before = dead.stats();
    std::stop_source stop;
    auto second = spawn([&] {
      // The call has not begun, and never will.
      return dead.run([&ran] { ran = true; }, stop.get_token()).error;
    });
    while (dead.stats().waiting == before.waiting) this_fiber::yield();
    (void)stop.request_stop();
    CHECK(second.join() == Errc::cancelled);
    CHECK(dead.stats().running == 1);
    CHECK(dead.stats().given_up == before.given_up + 1);
    // Threads of other groups do not hang.
    BlockingGroup alive({.max_threads = 1});
    CHECK(alive.run([] { return 2; }).value == 2);
    CHECK(blocking([] { return 3; }) == 3);
    hangs_on.set();
  }
  CHECK(!ran);
}

FIBER_TEST_CASE("a BlockingGroup refuses calls beyond max_waiting") {
  Event hangs_on;
  BlockingGroup group({.max_threads = 1, .max_waiting = 2});
  std::vector<JoinHandle<std::error_code>> callers;
  for (int i = 0; i < 3; ++i) {
    callers.push_back(spawn([&] { return group.run([&] { hangs_on.wait(); }).error; }));
    while (group.stats().running + group.stats().waiting < callers.size() ||
           group.stats().running == 0) {
      this_fiber::yield();
    }
  }
  CHECK(group.run([] {}).error == Errc::full);
  CHECK(group.stats().refused == 1);
  hangs_on.set();
  for (auto& caller : callers) CHECK(!caller.join());
}

FIBER_TEST_CASE("a BlockingGroup drops a call whose caller gives up before the call has begun") {
  Event hangs_on;
  BlockingGroup group({.max_threads = 1, .max_waiting = 3});
  auto hang = spawn([&] { return group.run([&] { hangs_on.wait(); }).error; });
  while (group.stats().running == 0) this_fiber::yield();
  auto held = std::make_shared<int>(1);
  // Tests the call in the middle of the queue, the last one and the first one.
  for (const std::vector<std::size_t>& order : {std::vector<std::size_t>{1, 2, 0}, {0, 1, 2}}) {
    std::vector<std::stop_source> stops(3);
    std::vector<JoinHandle<std::error_code>> row;
    for (const auto& stop : stops) {
      row.push_back(spawn(
          [&group, &held, token = stop.get_token()] { return group.run([held] {}, token).error; }));
      while (group.stats().waiting < row.size()) this_fiber::yield();
    }
    CHECK(group.run([] {}).error == Errc::full);
    for (std::size_t left = 3; const std::size_t one : order) {
      (void)stops[one].request_stop();
      CHECK(row[one].join() == Errc::cancelled);
      CHECK(group.stats().waiting == --left);
      CHECK(held.use_count() == static_cast<long>(1 + left));
    }
  }
  CHECK(group.run([held] {}, Deadline::after(1ms)).error == Errc::timed_out);
  CHECK(held.use_count() == 1);
  auto last = spawn([&] { return group.run([] {}).error; });
  while (group.stats().waiting == 0) this_fiber::yield();
  hangs_on.set();
  CHECK(!hang.join());
  CHECK(!last.join());
  CHECK(group.stats().finished == 2);
}

FIBER_TEST_CASE(
    "a BlockingGroup refuses no call while the number of concurrent calls is at most its number of "
    "threads") {
  for (const std::size_t waiting : {std::size_t{0}, ~std::size_t{0}}) {
    BlockingGroup group({.max_threads = 4, .max_waiting = waiting});
    std::vector<JoinHandle<void>> callers;
    for (int i = 0; i < 4; ++i) {
      callers.push_back(spawn([&group] {
        for (int round = 0; round < 50; ++round) CHECK(!group.run([] {}).error);
      }));
    }
    for (auto& caller : callers) caller.join();
    CHECK(group.stats().refused == 0);
    CHECK(group.stats().waiting == 0);
  }
}

FIBER_TEST_CASE_WITH("the destructor of a BlockingGroup waits for its calls and blocks no worker",
                     {.workers = {1}}) {
  Event hangs_on;
  std::atomic<bool> ends{false};
  std::atomic<bool> ran{false};
  auto owner = spawn([&] {
    BlockingGroup group({.max_threads = 1});
    std::stop_source stop;
    auto caller = spawn([&group, &hangs_on, &ran, token = stop.get_token()] {
      const auto hang = [&] {
        hangs_on.wait();
        ran = true;
      };
      return group.run(hang, token).error;
    });
    while (group.stats().running == 0) this_fiber::yield();
    (void)stop.request_stop();
    CHECK(caller.join() == Errc::cancelled);
    ends = true;  // No other fiber runs on this worker before the group ends.
  });
  while (!ends) this_fiber::yield();
  hangs_on.set();  // The only worker sets it, and so must not block at the group's end.
  owner.join();
  CHECK(ran);
}

TEST_CASE("a BlockingGroup can be used without a runtime") {
  const test::TestGuard guard("a group needs no runtime");
  Event hangs_on;
  BlockingGroup group;
  CHECK(group.run([] { return 5; }).value == 5);
  CHECK(group.run([&] { hangs_on.wait(); }, Deadline::after(1ms)).error == Errc::timed_out);
  std::stop_source stop;
  std::thread stopper([&] { (void)stop.request_stop(); });
  CHECK(group.run([&] { hangs_on.wait(); }, stop.get_token()).error == Errc::cancelled);
  stopper.join();
  hangs_on.set();
}

TEST_SUITE_END();

#include <weft/result_group.hpp>
#include <weft/task_group.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/sync/callers.hpp"

TEST_SUITE_BEGIN("sync/task_group");

using namespace std::chrono_literals;
using weft::Channel;
using weft::ChannelStatus;
using weft::Context;
using weft::Deadline;
using weft::OnError;
using weft::ResultGroup;
using weft::TaskGroup;
using weft::test::await_parked;

FIBER_TEST_CASE("join waits for every task, and for those that tasks have started") {
  TaskGroup group;
  std::atomic<int> ended{0};
  for (int i = 0; i < 10; ++i) {
    group.spawn([&] {
      group.spawn([&] {
        weft::this_fiber::yield();
        ++ended;
      });
      ++ended;
    });
  }
  group.join();
  CHECK(ended == 20);
  group.spawn([&] { ++ended; });
  group.join();
  CHECK(ended == 21);
}

FIBER_TEST_CASE("the first exception cancels the others and is thrown by join") {
  TaskGroup group;
  Channel<int> never;
  std::atomic<int> stopped{0};
  for (int i = 0; i < 3; ++i) {
    group.spawn([&](Context& context) {
      std::optional<int> value;
      if (never.receive_until(value, context) == ChannelStatus::stopped) ++stopped;
    });
    group.spawn([&](std::stop_token token) {
      if (!weft::this_fiber::sleep_for(1h, token)) ++stopped;
    });
  }
  group.spawn([&] {
    await_parked(runtime, "channel receive", 3);
    await_parked(runtime, "sleep", 3);
    throw std::runtime_error("first");
  });
  CHECK_THROWS_WITH(group.join(), "first");
  CHECK(stopped == 6);
  CHECK_THROWS_WITH(group.context().throw_if_over(), "first");
  group.join();
}

FIBER_TEST_CASE("a group may let all tasks run on, and keeps all exceptions") {
  TaskGroup group({.on_error = OnError::run_rest});
  std::atomic<int> ended{0};
  for (int i = 0; i < 4; ++i) {
    group.spawn([&, i](Context& context) {
      weft::this_fiber::yield();
      if (!context.is_over()) ++ended;
      if (i % 2 == 0) throw std::runtime_error("even");
    });
  }
  group.wait();
  CHECK(ended == 4);
  CHECK(group.take_errors().size() == 2);
  CHECK(group.take_errors().empty());
  group.spawn([] { throw std::runtime_error("odd"); });
  CHECK_THROWS_WITH(group.join(), "odd");
}

FIBER_TEST_CASE("no more tasks run at once than the limit says") {
  CHECK_THROWS_AS(TaskGroup({.limit = 0}), std::invalid_argument);
  TaskGroup group({.limit = 3});
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  for (int i = 0; i < 50; ++i) {
    group.spawn([&] {
      const int now = ++running;
      int seen = most.load();
      while (seen < now && !most.compare_exchange_weak(seen, now)) {
      }
      weft::this_fiber::yield();
      --running;
    });
  }
  group.join();
  CHECK(most <= 3);
  CHECK(most >= 1);
}

FIBER_TEST_CASE("a task that starts others at the limit does their work itself") {
  TaskGroup group({.limit = 2});
  std::atomic<int> ran{0};
  std::atomic<int> running{0};
  std::atomic<bool> exceeded{false};
  const std::function<void(int)> tree = [&](int depth) {
    if (++running > 2 * 5) exceeded = true;  // Two fibers, each at most five calls deep.
    ++ran;
    weft::this_fiber::yield();
    if (depth > 0) {
      for (int i = 0; i < 3; ++i) group.spawn([&tree, depth] { tree(depth - 1); });
    }
    --running;
  };
  group.spawn([&] { tree(4); });
  group.join();
  CHECK(ran == 1 + 3 + 9 + 27 + 81);
  CHECK(exceeded == false);
}

FIBER_TEST_CASE("a group's tasks work in its context, which is a child of the caller's") {
  weft::with_timeout(1h, [&](Context& outer) {
    TaskGroup group;
    CHECK(group.context().is_within(outer));
    group.spawn([&] {
      CHECK(weft::this_fiber::context() == &group.context());
      CHECK_FALSE(weft::this_fiber::sleep_for(1h, weft::this_fiber::until()));
    });
    await_parked(runtime, "sleep", 1);
    outer.cancel();
    group.join();
  });
}

FIBER_TEST_CASE("at the limit try_spawn refuses, and spawn_until gives up") {
  TaskGroup group({.limit = 1});
  Channel<int> gate;
  group.spawn([&] { (void)gate.receive(); });
  CHECK_FALSE(group.try_spawn([] { FAIL_CHECK("refused"); }));
  CHECK_FALSE(group.spawn_until(Deadline::after(1ms), [] { FAIL_CHECK("refused"); }));
  Context context;
  context.cancel();
  CHECK_FALSE(group.spawn_until(context, [] { FAIL_CHECK("refused"); }));
  CHECK_FALSE(group.wait_until(Deadline::past()));
  CHECK_FALSE(group.wait_until(context));
  gate.send(1);
  group.join();
  bool ran = false;
  CHECK(group.try_spawn([&] { ran = true; }));
  group.join();
  CHECK(ran);
}

FIBER_TEST_CASE("leaving the scope cancels what runs and waits for it") {
  std::atomic<bool> ended{false};
  {
    TaskGroup group;
    group.spawn([&](Context& context) {
      CHECK_FALSE(weft::this_fiber::sleep_for(1h, context));
      weft::this_fiber::yield();
      ended = true;
    });
    await_parked(runtime, "sleep", 1);
  }
  CHECK(ended);
}

FIBER_TEST_CASE("a group ends with its parent's context, and at its deadline") {
  Context parent;
  TaskGroup group(&parent);
  group.spawn([&](Context& context) { CHECK_FALSE(weft::this_fiber::sleep_for(1h, context)); });
  await_parked(runtime, "sleep", 1);
  parent.cancel();
  group.join();
  TaskGroup timed({.deadline = Deadline::after(2ms)});
  timed.spawn([&](std::stop_token token) { CHECK_FALSE(weft::this_fiber::sleep_for(1h, token)); });
  timed.join();
  CHECK(timed.context().error() == weft::Errc::timed_out);
}

FIBER_TEST_CASE("what a task holds is gone when join returns") {
  auto resource = std::make_shared<int>(1);
  TaskGroup group;
  group.spawn([held = resource] { weft::this_fiber::yield(); });
  group.join();
  CHECK(resource.use_count() == 1);
}

FIBER_TEST_CASE("results come in the order of the spawns, whoever was first") {
  ResultGroup<std::unique_ptr<int>> group({.limit = 4});
  for (int i = 0; i < 100; ++i) {
    group.spawn([i] {
      for (int k = i % 7; k > 0; --k) weft::this_fiber::yield();
      return std::make_unique<int>(i);
    });
  }
  const auto results = group.join();
  CHECK(results.size() == 100);
  for (int i = 0; i < 100; ++i) CHECK(*results[static_cast<std::size_t>(i)] == i);
  CHECK(group.join().empty());
}

FIBER_TEST_CASE("a result group throws the first exception") {
  ResultGroup<int> group;
  group.spawn([](Context& context) {
    CHECK_FALSE(weft::this_fiber::sleep_for(1h, context));
    return 1;
  });
  group.spawn([&]() -> int {
    await_parked(runtime, "sleep", 1);
    throw std::runtime_error("no result");
  });
  CHECK_THROWS_WITH((void)group.join(), "no result");
  CHECK(group.join().empty());
}

THREAD_TEST_CASE("a plain thread has groups too") {
  TaskGroup group({.limit = 2});
  std::atomic<int> ended{0};
  for (int i = 0; i < 10; ++i) group.spawn([&] { ++ended; });
  group.join();
  CHECK(ended == 10);
  group.spawn([] { throw std::runtime_error("a task"); });
  CHECK_THROWS_WITH(group.join(), "a task");
}

THREAD_TEST_CASE("limits end a plain thread's waits for room and for the end of a group") {
  Channel<int> gate;
  TaskGroup group({.limit = 1});
  group.spawn([&] { CHECK(gate.receive() == 1); });
  std::stop_source source;
  weft::go([source]() mutable { (void)source.request_stop(); });
  CHECK_FALSE(group.spawn_until(Deadline::after(1ms), [] { FAIL_CHECK("refused"); }));
  CHECK_FALSE(group.spawn_until(source.get_token(), [] { FAIL_CHECK("refused"); }));
  CHECK_FALSE(group.wait_until(Deadline::after(1ms)));
  CHECK_FALSE(group.wait_until(source.get_token()));
  gate.send(1);
  group.join();
  bool ran = false;
  CHECK(group.spawn_until(source.get_token(), [&] { ran = true; }));
  group.join();
  CHECK(ran);
}

TEST_SUITE_END();

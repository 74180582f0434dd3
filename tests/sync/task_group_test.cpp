#include <weft/result_group.hpp>
#include <weft/task_group.hpp>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>
#include <weft/channel.hpp>
#include <weft/event.hpp>
#include <weft/fiber_local.hpp>
#include <weft/go.hpp>
#include <weft/mutex.hpp>
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

FIBER_TEST_CASE("TaskGroup::join() waits for all tasks, including tasks that tasks have spawned") {
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

FIBER_TEST_CASE("the first exception cancels the group's other tasks, and join() throws it") {
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

FIBER_TEST_CASE("a group with OnError::run_rest lets all tasks continue and keeps all exceptions") {
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

FIBER_TEST_CASE("a group never runs more tasks at once than max_running") {
  CHECK_THROWS_AS(TaskGroup({.max_running = 0}), std::invalid_argument);
  TaskGroup group({.max_running = 3});
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

FIBER_TEST_CASE("a full group runs all tasks that its tasks spawn, and never exceeds its limit") {
  TaskGroup group({.max_running = 2});
  std::atomic<int> ran{0};
  std::atomic<int> running{0};
  std::atomic<bool> exceeded{false};
  const std::function<void(int)> tree = [&](int depth) {
    if (++running > 2) exceeded = true;
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

FIBER_TEST_CASE("tasks of a full group that each spawn the next task use no additional stack") {
  TaskGroup group({.max_running = 4});
  std::atomic<int> ran{0};
  const std::function<void(int)> go_deeper = [&](int left) {
    ++ran;
    if (left > 0) group.spawn([&go_deeper, left] { go_deeper(left - 1); });
    weft::this_fiber::yield();
  };
  for (int i = 0; i < 4; ++i) group.spawn([&] { go_deeper(1000); });
  group.join();
  CHECK(ran == 4 * 1001);
}

FIBER_TEST_CASE("a task of a full group may spawn tasks in a NoCancel scope or in an inner group") {
  const Context unrelated;
  TaskGroup group({.max_running = 1});
  std::atomic<int> ran{0};
  group.spawn([&] {
    const weft::this_fiber::NoCancel shield;
    group.spawn([&] { ++ran; });
    TaskGroup inner(&unrelated);
    inner.spawn([&] {
      TaskGroup innermost(nullptr, {.max_running = 1});
      innermost.spawn([&] { group.spawn([&] { ++ran; }); });
      innermost.join();
      CHECK(group.spawn_until(Deadline::past(), [&] { ++ran; }));
    });
    inner.join();
    CHECK_FALSE(group.try_spawn([] { FAIL_CHECK("refused"); }));
    CHECK(ran == 0);
  });
  group.join();
  CHECK(ran == 3);
}

FIBER_TEST_CASE("a task of a full group may spawn tasks that need a lock held by the spawner") {
  weft::Mutex mutex;
  TaskGroup group({.max_running = 1});
  std::vector<int> order;
  group.spawn([&] {
    const std::lock_guard guard(mutex);
    for (int i = 1; i <= 3; ++i) {
      group.spawn([&, i] {
        const std::lock_guard again(mutex);
        order.push_back(i);
      });
    }
    order.push_back(0);
  });
  group.join();
  CHECK(order == std::vector<int>{0, 1, 2, 3});
}

FIBER_TEST_CASE("a queued task of a group has its own context and FiberLocals, and may throw") {
  static weft::FiberLocal<int> local;
  TaskGroup group({.max_running = 1, .on_error = OnError::run_rest});
  group.spawn([&] {
    *local = 1;
    group.spawn([&](Context& context) {
      CHECK(&context == &group.context());
      CHECK(*local == 0);
      *local = 2;
      throw std::runtime_error("queued");
    });
    group.spawn([&] { CHECK(*local == 0); });
    throw std::runtime_error("first");
  });
  CHECK_THROWS_WITH(group.join(), "first");
  CHECK(group.take_errors().empty());
}

FIBER_TEST_CASE("no task is lost when many tasks of a full group spawn further tasks") {
  for (int round = 0; round < 200 / static_cast<int>(weft::test::kSlowdown); ++round) {
    TaskGroup group({.max_running = 2});
    std::atomic<int> ran{0};
    for (int i = 0; i < 4; ++i) {
      group.spawn([&] {
        ++ran;
        for (int k = 0; k < 3; ++k) group.spawn([&] { ++ran; });
      });
    }
    group.join();
    CHECK(ran == 16);
  }
}

FIBER_TEST_CASE("a group's tasks run in the group's context, a child of the caller's context") {
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

FIBER_TEST_CASE("the fibers of a group run with the group's fiber options") {
  TaskGroup group({.fibers = {.stack_size = 256 * 1024, .name = "reader"}});
  std::string name;
  group.spawn([&] {
    name = weft::this_fiber::name();
    std::array<volatile char, 128 * 1024> more_than_the_usual_stack;
    for (std::size_t i = 0; i < more_than_the_usual_stack.size(); i += 1024) {
      more_than_the_usual_stack[i] = 1;
    }
  });
  group.join();
  CHECK(name == "reader");
}

FIBER_TEST_CASE("a full group refuses try_spawn(), and ends spawn_until() at its deadline") {
  TaskGroup group({.max_running = 1});
  Channel<int> gate;
  group.spawn([&] { (void)gate.receive(); });
  CHECK_FALSE(group.try_spawn([] { FAIL_CHECK("refused"); }));
  CHECK_FALSE(group.spawn_until(Deadline::after(1ms), [] { FAIL_CHECK("refused"); }));
  Context context;
  context.cancel();
  CHECK_FALSE(group.spawn_until(context, [] { FAIL_CHECK("refused"); }));
  CHECK_FALSE(group.wait_until(Deadline::past()));
  CHECK_FALSE(group.wait_until(context));
  (void)gate.send(1);
  group.join();
  bool ran = false;
  CHECK(group.try_spawn([&] { ran = true; }));
  group.join();
  CHECK(ran);
}

FIBER_TEST_CASE("the destructor of a group cancels its running tasks and waits for them") {
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

FIBER_TEST_CASE("a group is cancelled when its parent context ends, or when its deadline passes") {
  Context parent;
  TaskGroup group(&parent);
  group.spawn([&](Context& context) { CHECK_FALSE(weft::this_fiber::sleep_for(1h, context)); });
  await_parked(runtime, "sleep", 1);
  parent.cancel();
  group.join();
  TaskGroup timed({.deadline = Deadline::after(2ms)});
  timed.spawn([&](std::stop_token token) { CHECK_FALSE(weft::this_fiber::sleep_for(1h, token)); });
  timed.join();
  CHECK(timed.context().status() == weft::Errc::timed_out);
}

FIBER_TEST_CASE("the captures of a task are destroyed before TaskGroup::join() returns") {
  auto resource = std::make_shared<int>(1);
  TaskGroup group;
  group.spawn([held = resource] { weft::this_fiber::yield(); });
  group.join();
  CHECK(resource.use_count() == 1);
}

FIBER_TEST_CASE("a result group returns results in the order in which the tasks were spawned") {
  ResultGroup<std::unique_ptr<int>> group({.max_running = 4});
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

FIBER_TEST_CASE("the join() of a result group throws the first exception") {
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

THREAD_TEST_CASE("a plain thread may spawn and join tasks of a group") {
  TaskGroup group({.max_running = 2});
  std::atomic<int> ended{0};
  for (int i = 0; i < 10; ++i) group.spawn([&] { ++ended; });
  group.join();
  CHECK(ended == 10);
  group.spawn([] { throw std::runtime_error("a task"); });
  CHECK_THROWS_WITH(group.join(), "a task");
}

THREAD_TEST_CASE("a deadline or a stop request ends a plain thread's waits for a group") {
  Channel<int> gate;
  TaskGroup group({.max_running = 1});
  group.spawn([&] { CHECK(gate.receive() == 1); });
  std::stop_source source;
  weft::go([source]() mutable { (void)source.request_stop(); });
  CHECK_FALSE(group.spawn_until(Deadline::after(1ms), [] { FAIL_CHECK("refused"); }));
  CHECK_FALSE(group.spawn_until(source.get_token(), [] { FAIL_CHECK("refused"); }));
  CHECK_FALSE(group.wait_until(Deadline::after(1ms)));
  CHECK_FALSE(group.wait_until(source.get_token()));
  (void)gate.send(1);
  group.join();
  bool ran = false;
  CHECK(group.spawn_until(source.get_token(), [&] { ran = true; }));
  group.join();
  CHECK(ran);
}

FIBER_TEST_CASE("a delayed task of a group runs after its delay, and join() waits for the task") {
  const auto begin = Deadline::Clock::now();
  TaskGroup group({.max_running = 1});
  int count = 0;
  group.spawn_after(2ms, [&] {
    CHECK(Deadline::Clock::now() - begin >= 2ms);
    ++count;
  });
  group.join();
  CHECK(count == 1);
  group.spawn_after(0ms, [](Context&) { throw std::out_of_range("late"); });
  CHECK_THROWS_AS(group.join(), std::out_of_range);
}

FIBER_TEST_CASE("a cancelled group drops the tasks whose delay has not passed") {
  bool has_run = false;
  const auto task = [&has_run] { has_run = true; };
  TaskGroup group({.max_running = 1});
  group.spawn_after(1h, task);
  CHECK(group.try_spawn([] {}));  // A delayed task does not count.
  CHECK_FALSE(group.wait_until(Deadline::past()));
  await_parked(runtime, "sleep", 1);
  group.cancel();
  group.join();
  {
    TaskGroup left;
    left.spawn_after(1h, task);
  }
  // At the limit, the start waits for a place, and then gives up.
  weft::Event open;
  TaskGroup full({.max_running = 1});
  full.spawn([&] { open.wait(); });
  full.spawn_after(0ms, task);
  await_parked(runtime, "semaphore", 1);
  full.cancel();
  open.set();
  full.join();
  CHECK_FALSE(has_run);
}

TEST_SUITE_END();

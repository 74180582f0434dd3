// Tests groups whose tasks run in a pool.
#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <system_error>
#include <vector>
#include <weft/go.hpp>
#include <weft/result_group.hpp>
#include <weft/task_group.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using Gate = weft::test::Flag;

namespace {

int fibonacci(FiberPool& pool, int n) {
  if (n < 2) return n;
  ResultGroup<int> group(pool);
  group.spawn([&pool, n] { return fibonacci(pool, n - 1); });
  group.spawn([&pool, n] { return fibonacci(pool, n - 2); });
  const std::vector<int> both = group.join();
  return both[0] + both[1];
}

}  // namespace

TEST_SUITE_BEGIN("pool/group");

FIBER_TEST_CASE("groups that share a pool together never exceed the pool's capacity") {
  Concurrency gauge;
  FiberPool pool({.capacity = 3, .queue_capacity = 5});
  std::vector<JoinHandle<int>> owners;
  for (int g = 0; g < 8; ++g) {
    owners.push_back(spawn([&] {
      std::atomic<int> ran{0};
      TaskGroup group(pool);
      for (int i = 0; i < 20; ++i) {
        group.spawn([&] {
          const Concurrency::Stay stay(gauge);
          this_fiber::yield();
          ++ran;
        });
      }
      group.join();
      return ran.load();
    }));
  }
  for (auto& owner : owners) CHECK(owner.join() == 20);
  CHECK(gauge.most() <= 3);
  pool.wait_idle();
  CHECK(pool.stats().completed == 160);
}

FIBER_TEST_CASE(
    "a task gives its slot back while it joins a group, whichever call started the group's tasks") {
  FiberPool pool({.capacity = 1, .queue_capacity = 1});
  int ran = 0;
  pool.run([&] {
    TaskGroup group(pool);
    CHECK(group.try_spawn([&] { ++ran; }));
    group.join();
    CHECK(group.spawn_until(Deadline::after(1h), [&] { ++ran; }));
    group.join();
  });
  CHECK(ran == 2);
}

FIBER_TEST_CASE("a task may join a group on its own pool of capacity 1") {
  for (const std::size_t capacity : {1u, 2u, 5u}) {
    FiberPool pool({.capacity = capacity});
    CHECK(pool.run([&] { return fibonacci(pool, kSanitized ? 6 : 9); }) == (kSanitized ? 8 : 34));
    pool.wait_idle();
    CHECK(pool.stats().released == 0);
    CHECK(pool.stats().live <= capacity);
  }
}

FIBER_TEST_CASE(
    "in a pool of capacity 1, a task's spawn waits for room when its group's max_running is "
    "reached") {
  FiberPool pool({.capacity = 1, .queue_capacity = 10});
  std::atomic<int> ran{0};
  pool.run([&] {
    TaskGroup group(pool, {.max_running = 1});
    for (int i = 0; i < 5; ++i) group.spawn([&] { ++ran; });
    CHECK(group.spawn_until(Deadline::after(1h), [&] { ++ran; }));
    group.join();
  });
  CHECK(ran == 6);
}

FIBER_TEST_CASE(
    "a task regains its slot when a deadline or a cancellation ends its wait for a group") {
  Gate release;
  FiberPool pool({.capacity = 2});
  pool.run([&] {
    TaskGroup group(pool);
    group.spawn([&] { release.wait(); });
    CHECK_FALSE(group.wait_until(Deadline::past()));
    CHECK_FALSE(group.wait_until(Deadline::after(1ms)));
    CHECK(pool.stats().released == 0);
    Context context;
    auto canceller = spawn([&] {
      wait_until_true([&] { return pool.stats().released == 1; });
      context.cancel();
    });
    CHECK_FALSE(group.wait_until(context));
    CHECK_FALSE(group.wait_until(context));
    CHECK(pool.stats().released == 0);
    canceller.join();
    release.set();
    CHECK(group.wait_until(Deadline::after(1h)));
    CHECK(group.wait_until(context));
  });
}

FIBER_TEST_CASE("a group reports a task that the pool refused and does not wait for that task") {
  Gate release;
  FiberPool pool({.capacity = 1, .on_full = OnFull::reject});
  TaskGroup group(pool, {.max_running = 2});
  group.spawn([&] { release.wait(); });
  bool ran = false;
  for (int i = 0; i < 5; ++i) {
    CHECK_THROWS_AS(group.spawn([&] { ran = true; }), std::system_error);
    CHECK_FALSE(group.try_spawn([&] { ran = true; }));
    CHECK_FALSE(group.spawn_until(Deadline::past(), [&] { ran = true; }));
  }
  CHECK_FALSE(group.wait_until(Deadline::past()));
  release.set();
  group.join();
  CHECK_FALSE(ran);
  pool.wait_idle();
  CHECK(group.try_spawn([&] { ran = true; }));
  group.join();
  CHECK(ran);
  pool.close(Close::drain);
  CHECK_THROWS_AS(group.spawn([] {}), std::system_error);
  CHECK(group.spawn_or_refuse([] {}) == Errc::closed);
  CHECK(group.try_spawn([] {}) == Errc::closed);
  CHECK(group.spawn_until({}, [] {}) == Errc::closed);
  group.join();
}

FIBER_TEST_CASE("a group's join() throws when the pool has dropped tasks of the group") {
  Gate release;
  FiberPool pool({.capacity = 1, .queue_capacity = 10});
  TaskGroup group(pool);
  ResultGroup<int> results(pool);
  group.spawn([&] { release.wait(); });
  wait_until_true([&] { return pool.stats().busy == 1; });
  CHECK(group.try_spawn([] { FAIL_CHECK("dropped"); }));
  group.spawn([] { FAIL_CHECK("dropped"); });
  results.spawn([] { return 1; });
  pool.close(Close::discard);
  CHECK_THROWS_AS((void)results.join(), std::system_error);
  release.set();
  CHECK_THROWS_AS(group.join(), std::system_error);
  group.join();
  pool.join();
  pool.reopen();
  results.spawn([] { return 2; });
  CHECK(results.join() == std::vector<int>{2});
}

FIBER_TEST_CASE(
    "the first exception cancels the other tasks of its group, but no tasks of other groups") {
  std::atomic<int> reported{0};
  FiberPool pool({.capacity = 4, .on_exception = [&](std::exception_ptr) { ++reported; }});
  TaskGroup one(pool), other(pool);
  Gate release;
  one.spawn([](Context& context) { CHECK_FALSE(this_fiber::sleep_for(1h, context)); });
  other.spawn([&](Context& context) {
    release.wait();
    CHECK_FALSE(context.is_over());
  });
  one.spawn([] { throw std::runtime_error("one's"); });
  CHECK_THROWS_WITH(one.join(), "one's");
  release.set();
  other.join();
  CHECK(reported == 0);
}

FIBER_TEST_CASE(
    "tasks of a group can spawn further tasks even if max_running is reached and the pool is "
    "full") {
  std::atomic<int> ran{0};
  FiberPool pool({.capacity = 2, .queue_capacity = 1});
  TaskGroup group(pool, {.max_running = 3});
  std::function<void(int)> tree = [&](int depth) {
    ++ran;
    if (depth == 0) return;
    for (int i = 0; i < 2; ++i) group.spawn([&tree, depth] { tree(depth - 1); });
  };
  group.spawn([&] { tree(5); });
  group.join();
  CHECK(ran == 63);
}

THREAD_TEST_CASE("a plain thread may spawn and join a group on a pool") {
  FiberPool pool({.capacity = 2});
  ResultGroup<int> group(pool);
  for (int i = 0; i < 50; ++i) group.spawn([i] { return i; });
  const std::vector<int> results = group.join();
  for (int i = 0; i < 50; ++i) CHECK(results[static_cast<std::size_t>(i)] == i);
}

FIBER_TEST_CASE(
    "a delayed task of a group occupies no slot, and join() throws the error when the task is "
    "later refused") {
  FiberPool pool({.capacity = 1});
  TaskGroup group(pool);
  bool has_run = false;
  group.spawn_after(1ms, [&] { has_run = true; });
  CHECK(pool.run([] { return 7; }) == 7);
  group.join();
  CHECK(has_run);
  group.spawn_after(1h, [] {});
  pool.close(Close::drain);
  group.spawn_after(0ms, [] {});
  CHECK_THROWS_AS(group.join(), std::system_error);
}

TEST_SUITE_END();

// Tests the options that tasks of groups, loops and streams may pass to their pool.
#include <atomic>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/ordered_stream.hpp>
#include <weft/parallel.hpp>
#include <weft/result_group.hpp>
#include <weft/task_group.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using Gate = weft::test::Flag;

namespace {

// Ends when a stop is requested.
struct Stoppable {
  Gate& begun;  // A worker counts as busy slightly earlier, when a stop request would still drop
                // the task.
  Gate& stopped;
  std::unique_ptr<int> cargo = std::make_unique<int>(7);
  int operator()(const std::stop_token& token) const {
    begun.set();
    CHECK_FALSE(this_fiber::sleep_for(1h, token));
    stopped.set();
    return *cargo;
  }
};

}  // namespace

TEST_SUITE_BEGIN("pool/group_options");

FIBER_TEST_CASE("submit options of a group's task apply in the group's pool") {
  FiberPool pool({.capacity = 1, .queue_capacity = 10});
  std::vector<int> order;  // One task at a time appends to it.
  TaskGroup group(pool);
  ResultGroup<int> results(pool);
  pool.pause();
  group.spawn({.priority = Priority::low, .key = "same"}, [&] { order.push_back(3); });
  group.spawn([&] { order.push_back(2); });
  results.spawn({.priority = Priority::high}, [&] {
    order.push_back(1);
    return 7;
  });
  pool.resume();
  CHECK(results.join() == std::vector<int>{7});
  group.join();
  CHECK(order == std::vector<int>{1, 2, 3});
  order.clear();
  pool.pause();
  CHECK(group.try_spawn({.priority = Priority::low}, [&] { order.push_back(2); }));
  CHECK(group.spawn_until({.priority = Priority::high}, 1h, [&] { order.push_back(1); }));
  pool.resume();
  group.join();
  CHECK(order == std::vector<int>{1, 2});
  order.push_back(3);
  // A task that is dropped before its turn never ran, as the join reports.
  std::stop_source stop;
  pool.pause();
  group.spawn({.stop = stop.get_token()}, [&] { order.push_back(4); });
  stop.request_stop();
  pool.resume();
  CHECK_THROWS_AS(group.join(), std::system_error);
  CHECK(order.size() == 3);
  TaskGroup without_pool;
  CHECK_THROWS_AS(without_pool.spawn({.priority = Priority::high}, [] {}), std::invalid_argument);
  CHECK_THROWS_AS((void)without_pool.try_spawn({.weight = 2}, [] {}), std::invalid_argument);
  CHECK_THROWS_AS((void)without_pool.spawn_until({.weight = 2}, {}, [] {}), std::invalid_argument);
}

FIBER_TEST_CASE("a callable with task options is unchanged when a group refuses it") {
  struct Callable {
    std::unique_ptr<int> value;
    void operator()() const {}
  };
  FiberPool pool({.capacity = 1});
  TaskGroup group(pool);
  Callable task{std::make_unique<int>(5)};
  CHECK(group.spawn_or_refuse({.weight = 2}, std::move(task)) == Errc::too_heavy);
  CHECK(task.value != nullptr);
  CHECK(group.try_spawn({.weight = 2}, std::move(task)) == Errc::too_heavy);
  CHECK(task.value != nullptr);
  CHECK(group.spawn_until({.weight = 2}, {}, std::move(task)) == Errc::too_heavy);
  CHECK(task.value != nullptr);
  group.join();
}

FIBER_TEST_CASE("the stop request and the timeout of one group task do not affect other tasks") {
  FiberPool pool({.capacity = 3});
  TaskGroup group(pool);
  ResultGroup<int> results(pool);
  std::stop_source stop;
  Gate begun[3], stopped, timed_out, cancelled;
  group.spawn({.priority = Priority::high}, Stoppable{begun[0], cancelled});
  results.spawn({.stop = stop.get_token()}, Stoppable{begun[1], stopped});
  group.spawn({.timeout = 1ms}, Stoppable{begun[2], timed_out});
  for (const Gate& each : begun) each.wait();
  stop.request_stop();
  CHECK(results.join() == std::vector<int>{7});
  timed_out.wait();
  CHECK_FALSE(cancelled.is_set());
  CHECK_FALSE(group.context().is_over());
  group.cancel();
  group.join();
  CHECK(cancelled.is_set());
  CHECK_THROWS_AS(group.spawn({.timeout = 1ms}, [] {}), std::invalid_argument);
}

FIBER_TEST_CASE(
    "close(cancel) stops a group task that has options, and the closed pool refuses and returns "
    "later tasks") {
  FiberPool pool({.capacity = 1});
  TaskGroup group(pool);
  Gate begun, stopped, never;
  CHECK(group.try_spawn({.stop = std::stop_source().get_token()}, Stoppable{begun, stopped}));
  begun.wait();
  pool.close(Close::cancel);
  group.join();
  CHECK(stopped.is_set());
  Stoppable task{never, never};
  CHECK(group.spawn_or_refuse({.timeout = 1ms}, std::move(task)) == Errc::closed);
  CHECK(task.cargo != nullptr);
  OrderedStream<int> stream(pool, 2, [](int) {});
  CHECK(stream.submit({.timeout = 1ms}, std::move(task)) == Errc::closed);
  CHECK(task.cargo != nullptr);
  stream.finish();
}

FIBER_TEST_CASE("an ordered stream accepts task options and keeps the order of the results") {
  FiberPool pool({.capacity = 2, .queue_capacity = 20});
  std::vector<int> started;  // The tasks write it; the key lets one run at a time.
  std::vector<int> delivered;
  OrderedStream<int> stream(pool, 20, [&](int value) { delivered.push_back(value); });
  pool.pause();
  for (int i = 0; i < 4; ++i) {
    const Priority priority = i < 2 ? Priority::low : Priority::high;
    CHECK(stream.submit({.priority = priority, .weight = 2}, [&, i] {
      started.push_back(i);
      return i;
    }));
  }
  pool.resume();
  stream.finish();
  CHECK(started == std::vector<int>{2, 3, 0, 1});
  CHECK(delivered == std::vector<int>{0, 1, 2, 3});
}

FIBER_TEST_CASE(
    "an ordered stream passes a stop request to its running task and reports a queued task that "
    "the request drops") {
  FiberPool pool({.capacity = 1, .queue_capacity = 2});
  std::stop_source stop;
  Gate begun, stopped;
  int delivered = 0;
  OrderedStream<int> stream(pool, 4, [&](int value) { delivered = value; });
  CHECK(stream.submit({.stop = stop.get_token()}, Stoppable{begun, stopped}));
  begun.wait();
  CHECK(stream.submit_until({.stop = stop.get_token()}, 1h, [] { return 9; }));
  stop.request_stop();
  bool is_cancelled = false;
  try {
    stream.finish();
  } catch (const std::system_error& error) {
    is_cancelled = error.code() == std::errc::operation_canceled;
  }
  CHECK(is_cancelled);
  CHECK(delivered == 7);
  OrderedStream<int> without_pool(1, [](int) {});
  CHECK_THROWS_AS((void)without_pool.submit({.weight = 1}, [] { return 1; }),
                  std::invalid_argument);
  without_pool.finish();
}

FIBER_TEST_CASE("parallel loops accept submit options") {
  FiberPool pool({.capacity = 4, .queue_capacity = 8});
  std::vector<int> numbers(100, 1);
  Concurrency gauge;
  const auto step = [&](int& number) {
    const Concurrency::Stay stay(gauge);
    this_fiber::yield();
    return ++number;
  };
  for_each(pool, {.weight = 4}, numbers, step);
  CHECK(transform(pool, {.key = "one"}, numbers, step, {.max_running = 4}) ==
        std::vector<int>(100, 3));
  CHECK(gauge.most() == 1);
  CHECK_THROWS_AS(for_each(pool, {.timeout = 1ms}, numbers, step), std::invalid_argument);
  CHECK_THROWS_AS(for_each(pool, {.weight = 5}, numbers, step), std::system_error);
  CHECK_THROWS_AS(for_each(pool, {.deadline = Deadline::past()}, numbers, step), std::system_error);
  CHECK(numbers == std::vector<int>(100, 3));
}

FIBER_TEST_CASE(
    "a parallel loop skips its remaining steps after a stop request or when its pool is "
    "cancelled") {
  for (const bool is_of_pool : {false, true}) {
    FiberPool pool({.capacity = 2, .queue_capacity = 8});
    std::stop_source stop;
    std::atomic<int> steps{0};
    const std::vector<int> numbers(1000);
    const auto loop = [&] {
      for_each(pool, {.stop = stop.get_token()}, numbers, [&](int) {
        if (++steps < 10) return;
        is_of_pool ? pool.close(Close::cancel) : (void)stop.request_stop();
      });
    };
    CHECK_THROWS_AS(loop(), std::system_error);
    CHECK(steps < 1000);
  }
}

TEST_SUITE_END();

// Tests loops without a pool in tasks of a pool, where the steps of a loop wait for that pool.
#include <atomic>
#include <cstddef>
#include <numeric>
#include <system_error>
#include <vector>
#include <weft/function_pool.hpp>
#include <weft/parallel.hpp>
#include <weft/pool.hpp>
#include <weft/this_fiber.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"

using namespace weft;
using namespace weft::test;

namespace {

std::vector<int> numbers_below(int end) {
  std::vector<int> numbers(static_cast<std::size_t>(end));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

// Calls `run` for each number, each in a separate fiber; some steps do other things in between.
template <class Run>
int sum_of(int end, Run run) {
  std::atomic<int> sum{0};
  for_each(numbers_below(end),
           [&](int number) {
             if (number % 3 == 0) this_fiber::yield();
             sum += run(number);
             if (number % 3 == 1) this_fiber::yield();
             sum += run(number);
           },
           {.max_running = 4});
  return sum;
}

}  // namespace

TEST_SUITE_BEGIN("pool/loop");

FIBER_TEST_CASE(
    "a step of a parallel loop in a pool of capacity 1 can wait for a task of that pool") {
  for (const std::size_t queue : {std::size_t{0}, std::size_t{3}, kUnlimited}) {
    Concurrency gauge;
    FiberPool pool({.capacity = 1, .queue_capacity = queue});
    const auto task = [&](int number) {
      return pool.run([&gauge, number] {
        const Concurrency::Stay stay(gauge);
        this_fiber::yield();
        return number;
      });
    };
    const int sum = pool.run([&] {
      const int all = sum_of(20, task);
      const PoolStats stats = pool.stats();
      CHECK(stats.busy == 1);  // The task has its slot again.
      CHECK(stats.released == 0);
      return all;
    });
    CHECK(sum == 380);
    CHECK(gauge.most() == 1);
    CHECK(pool.stats().completed == 41);
  }
}

FIBER_TEST_CASE(
    "a pool keeps to its capacity when loop steps of its tasks wait for other tasks of the pool") {
  for (const std::size_t capacity : {1u, 2u, 3u}) {
    Concurrency gauge;
    FiberPool pool({.capacity = capacity, .queue_capacity = 10});
    std::vector<PoolTask<int>> tasks;
    for (int i = 0; i < 6; ++i) {
      tasks.push_back(pool.async([&] {
        return sum_of(9, [&](int number) {
          auto task = pool.async([&gauge, number] {
            const Concurrency::Stay stay(gauge);
            return number;
          });
          return task.get();
        });
      }));
    }
    for (auto& task : tasks) CHECK(task.get() == 72);
    CHECK(gauge.most() <= capacity);
    pool.wait_idle();
    CHECK(pool.stats().live <= capacity);
    CHECK(balanced(pool.stats()));
  }
}

FIBER_TEST_CASE("a step of a nested parallel loop in a pool of capacity 1 can wait for that pool") {
  FiberPool pool({.capacity = 1});
  const int sum = pool.run([&] {
    return sum_of(3, [&](int) {
      return sum_of(3, [&](int number) { return pool.run([number] { return number; }); });
    });
  });
  CHECK(sum == 36);
}

FIBER_TEST_CASE("a waiting loop step releases all slots of its task, even in a sub-pool") {
  FiberPool parent({.capacity = 1});
  FiberPool pool({.capacity = 1, .parent = &parent});
  CHECK(pool.run([&] {
    return sum_of(5, [&](int number) { return parent.run([number] { return number; }); }) +
           sum_of(5, [&](int number) { return pool.run([number] { return number; }); });
  }) == 40);
  FiberPool heavy({.capacity = 3});
  CHECK(heavy.run({.weight = 3}, [&] {
    return sum_of(
        5, [&](int number) { return heavy.run({.weight = 2}, [number] { return number; }); });
  }) == 20);
  CHECK(heavy.stats().released == 0);
}

FIBER_TEST_CASE(
    "wait_idle() throws an error when called in a loop step of a task of the same pool") {
  FiberPool pool({.capacity = 1});
  std::atomic<int> refused{0};
  pool.run([&] {
    for_each(numbers_below(3), [&](int) {
      try {
        pool.wait_idle();
      } catch (const std::system_error& error) {
        if (error.code() == std::errc::resource_deadlock_would_occur) ++refused;
      }
    });
  });
  CHECK(refused == 3);
}

TEST_SUITE_END();

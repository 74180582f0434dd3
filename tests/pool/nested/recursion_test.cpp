// Tests tasks that run tasks of their own pool and wait for them, many levels deep.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>
#include <weft/fiber_local.hpp>
#include <weft/function_pool.hpp>
#include <weft/pool.hpp>
#include <weft/this_fiber.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"

using namespace weft;
using namespace weft::test;

namespace {

constexpr int kDepth = kSanitized ? 50 : 500;

// Returns the depth, counted as the calls return.
int descend(FiberPool& pool, Concurrency& gauge, int depth) {
  if (depth == 0) return 0;
  if (depth % 50 == 0) this_fiber::yield();
  int below = 0;
  pool.run([&] {
    {
      const Concurrency::Stay stay(gauge);
      if (depth % 70 == 0) this_fiber::yield();
    }
    below = descend(pool, gauge, depth - 1);
  });
  return below + 1;
}

}  // namespace

TEST_SUITE_BEGIN("pool/recursion");

FIBER_TEST_CASE("a deep recursion of run() starts at most as many workers as the capacity allows") {
  for (const std::size_t capacity : {1u, 2u, 5u}) {
    for (const std::size_t queue : {std::size_t{0}, std::size_t{3}, kUnlimited}) {
      Concurrency gauge;
      FiberPool pool({.capacity = capacity, .queue_capacity = queue});
      CHECK(pool.run([&] { return descend(pool, gauge, kDepth); }) == kDepth);
      pool.wait_idle();
      const PoolStats stats = pool.stats();
      CHECK(stats.started <= capacity);
      CHECK(stats.completed == kDepth + 1);
      CHECK(stats.released == 0);
      CHECK(gauge.most() == 1);
      CHECK(balanced(stats));
    }
  }
}

FIBER_TEST_CASE(
    "a deep recursion of run() in a sub-pool starts at most as many workers as the parent has") {
  Concurrency gauge;
  FiberPool parent({.capacity = 1});
  FiberPool pool({.capacity = 1, .parent = &parent});
  CHECK(pool.run([&] { return descend(pool, gauge, kDepth); }) == kDepth);
  pool.wait_idle();
  CHECK(parent.stats().started == 1);
  CHECK(pool.stats().released == 0);
}

FIBER_TEST_CASE(
    "a task that run() executes in its caller's slot has its own FiberLocals and may wait and "
    "throw") {
  const FiberLocal<int> value;
  FiberPool pool({.capacity = 1});
  pool.run([&] {
    *value = 1;
    const std::uint64_t outer = this_fiber::id();
    pool.run([&] {
      CHECK(this_fiber::id() != outer);
      CHECK(*value == 0);
      *value = 2;
      CHECK(pool.async([] { return 3; }).get() == 3);
    });
    CHECK(*value == 1);
    CHECK_THROWS_WITH(pool.run([] { throw std::runtime_error("inner"); }), "inner");
    CHECK(pool.stats().busy == 1);
    CHECK(pool.stats().released == 0);
  });
  CHECK(pool.stats().failed == 1);
  CHECK(pool.stats().completed == 3);
}

FIBER_TEST_CASE("a task that run() starts inside a task does not overtake queued tasks") {
  std::vector<int> order;
  FiberPool pool({.capacity = 1, .queue_capacity = 5});
  pool.run([&] {
    CHECK(pool.submit([&] { order.push_back(1); }));
    pool.run([&] { order.push_back(2); });
    order.push_back(3);
  });
  CHECK(order == std::vector<int>{1, 2, 3});
}

FIBER_TEST_CASE(
    "nested calls of a FunctionPool make at most one per-worker object for each worker") {
  std::atomic<int> made{0};
  FunctionPool<int, int>* self = nullptr;
  FunctionPool<int, int> pool(per_worker([&] {
                                ++made;
                                return [&](int number) {
                                  return number == 0 ? 0 : number + self->process(number - 1);
                                };
                              }),
                              {.capacity = 1, .idle_timeout = kNever});
  self = &pool;
  CHECK(pool.process(3) == 6);
  // A worker makes its object before its first task, which another worker may take instead.
  CHECK(static_cast<std::uint64_t>(made.load()) <= pool.pool().stats().started);
  CHECK(made >= 1);
}

TEST_SUITE_END();

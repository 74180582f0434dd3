// Tests G9: an error names each impossible option, and the call has no other effect.
#include <cmath>
#include <stdexcept>
#include <string>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

TEST_SUITE_BEGIN("pool/options");

FIBER_TEST_CASE("a pool refuses invalid options, and the error names the option") {
  CHECK(refused({.capacity = 0}, "capacity"));
  CHECK(refused({.capacity = 2, .min_workers = 3}, "min_workers"));
  CHECK(refused({.prestart = true}, "prestart"));
  CHECK(refused({.capacity = 1, .prealloc = true, .queue_capacity = kUnlimited}, "prealloc"));
  CHECK(refused({.capacity = kUnlimited, .prealloc = true}, "prealloc"));
  CHECK(refused({.capacity = kUnlimited, .grow = GrowPolicy::eager()}, "grow"));
  for (const GrowPolicy::LoadFactor factor : {GrowPolicy::LoadFactor{.up = 1, .down = 1},
                                              {.up = 1, .down = 0},
                                              {.up = NAN, .down = 1},
                                              {.step = 0},
                                              {.interval = 0ns}}) {
    CHECK(refused({.capacity = 2, .grow = GrowPolicy::load_factor(factor)}, "grow"));
  }
  CHECK(refused({.max_blocked = 0}, "max_blocked"));
  CHECK(refused({.on_full = OnFull::reject, .max_blocked = 3}, "max_blocked"));
  CHECK(refused({.queue_capacity = 0, .on_full = OnFull::drop_oldest}, "queue_capacity"));
  CHECK(refused({.idle_timeout = 0ns}, "idle_timeout"));
  CHECK(refused({.idle_timeout = -1s}, "idle_timeout"));
  CHECK(refused({.on_tick = {.period = 0ns, .call = [](const PoolStats&) {}}}, "on_tick"));
  CHECK(refused({.on_tick = {.period = -1s, .call = [](const PoolStats&) {}}}, "on_tick"));
  CHECK(refused({.on_tick = {.period = 1s}}, "on_tick"));
  CHECK(refused({.stack_size = std::size_t{17} << 20}, "stack_size"));
}

FIBER_TEST_CASE(
    "a pool preallocates memory for up to a million tasks and refuses prealloc for more tasks") {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  CHECK(!refused({.capacity = 1, .prealloc = true, .queue_capacity = kMost - 1}, "prealloc"));
  CHECK(!refused({.capacity = kMost, .prealloc = true, .queue_capacity = 0}, "prealloc"));
  CHECK(refused({.capacity = 2, .prealloc = true, .queue_capacity = kMost - 1}, "prealloc"));
  CHECK(refused({.capacity = kMost + 1, .prealloc = true, .queue_capacity = 0}, "prealloc"));
}

FIBER_TEST_CASE("resize() refuses a capacity of 0 and changes nothing") {
  FiberPool pool({.capacity = 3});
  CHECK_THROWS_AS(pool.resize(0), std::invalid_argument);
  CHECK(pool.capacity() == 3);
}

FIBER_TEST_CASE("a pool with default options has at least one slot") {
  FiberPool pool;
  CHECK(pool.capacity() >= 1);
  CHECK(pool.run([] { return 1; }) == 1);
}

FIBER_TEST_CASE("both the capacity and the queue capacity of a pool may be unlimited") {
  Flag release;
  FiberPool pool({.capacity = kUnlimited, .queue_capacity = kUnlimited});
  CHECK(pool.available_hint() == kUnlimited);
  std::vector<PoolTask<int>> tasks;
  for (int i = 0; i < 100; ++i) {
    tasks.push_back(pool.async([&, i] {
      release.wait();
      return i;
    }));
  }
  wait_until_true([&] { return pool.stats().busy == 100; });
  release.set();
  for (int i = 0; i < 100; ++i) CHECK(tasks[static_cast<std::size_t>(i)].get() == i);
}

FIBER_TEST_CASE("a resize below min_workers reduces min_workers to the capacity") {
  FiberPool pool({.capacity = 4, .min_workers = 4, .prestart = true});
  pool.resize(2);
  CHECK(pool.stats().live == 2);
  pool.resize(4);
  CHECK(pool.run([] { return 1; }) == 1);
}

FIBER_TEST_CASE("tasks of a pool have the stack size that the pool's options specify") {
  FiberPool pool({.capacity = 1, .stack_size = std::size_t{1} << 20});
  const auto sum = pool.run([] {
    volatile char large[std::size_t{700} << 10];
    large[0] = 1;
    large[sizeof large - 1] = 2;
    return large[0] + large[sizeof large - 1];
  });
  CHECK(sum == 3);
}

FIBER_TEST_CASE("capacities and queue capacities may exceed 32 bits") {
  constexpr std::size_t kHuge = 5'000'000'000;
  FiberPool pool({.capacity = kHuge, .queue_capacity = kHuge, .max_blocked = kHuge});
  CHECK(pool.capacity() == kHuge);
  CHECK(pool.available_hint() == kHuge);
  Flag release;
  for (int i = 0; i < 3; ++i) CHECK(pool.submit([&] { release.wait(); }));
  CHECK(pool.available_hint() == kHuge - 3);
  pool.resize(kUnlimited - 1);  // The queue allows as many: the sum must not overflow.
  CHECK(pool.submit([] {}));
  pool.resize(kHuge + 1);
  CHECK(pool.capacity() == kHuge + 1);
  pool.resize(1);
  CHECK(pool.available_hint() == 0);
  for (int i = 0; i < 100; ++i) CHECK(pool.try_submit([] {}));
  pool.resize(kHuge);
  release.set();
  pool.wait_idle();
  CHECK(pool.stats().completed == 104);
}

TEST_SUITE_END();

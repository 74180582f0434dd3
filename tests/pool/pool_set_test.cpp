// Tests several pools side by side, and which pool gets a task.
#include <weft/pool_set.hpp>

#include <atomic>
#include <stdexcept>
#include <vector>
#include <weft/go.hpp>
#include <weft/wait_group.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"

using namespace weft;
using namespace weft::test;
using Gate = weft::test::Flag;

TEST_SUITE_BEGIN("pool/pool_set");

FIBER_TEST_CASE("concurrent tasks never exceed the sum of the capacities of a pool set") {
  constexpr int kSubmitters = 32;
  const int each = 100 / kSlowdown;
  for (const std::size_t queue : {std::size_t{0}, std::size_t{2}, kUnlimited}) {
    for (const Balance balance : {Balance::round_robin, Balance::least_tasks}) {
      Concurrency gauge;
      std::atomic<int> ran{0};
      PoolSet pools(3, {.capacity = 2, .queue_capacity = queue}, balance);
      WaitGroup submitters;
      for (int i = 0; i < kSubmitters; ++i) {
        submitters.go([&] {
          for (int n = 0; n < each; ++n) {
            CHECK(pools.submit([&] {
              const Concurrency::Stay stay(gauge);
              this_fiber::yield();
              ran.fetch_add(1);
            }));
          }
        });
      }
      submitters.wait();
      pools.wait_idle();
      CHECK(ran.load() == kSubmitters * each);
      CHECK(gauge.most() <= 6);
      for (FiberPool& pool : pools) CHECK(balanced(pool.stats()));
    }
  }
}

FIBER_TEST_CASE("a pool set distributes tasks over its pools in rotation and skips a full pool") {
  PoolSet pools(2, {.capacity = 4});
  Gate gate;
  for (int i = 0; i < 4; ++i) CHECK(pools.submit([&] { gate.wait(); }));
  CHECK(pools[0].available_hint() == 2);
  CHECK(pools[1].available_hint() == 2);
  for (int i = 0; i < 2; ++i) CHECK(pools[0].submit([&] { gate.wait(); }));
  for (int i = 0; i < 2; ++i) CHECK(pools.submit([&] { gate.wait(); }));
  CHECK(pools[1].available_hint() == 0);
  CHECK(&pools.next() != &pools.next());
  gate.set();
  pools.wait_idle();
}

FIBER_TEST_CASE(
    "a pool set with Balance::least_tasks gives a task to the pool with the fewest tasks") {
  for (const std::size_t loaded : {0u, 1u}) {
    Gate gate;
    PoolSet pools(2, {.capacity = 4}, Balance::least_tasks);
    for (int i = 0; i < 3; ++i) CHECK(pools[loaded].submit([&] { gate.wait(); }));
    for (int i = 0; i < 3; ++i) CHECK(pools.submit({.key = i}, [&] { gate.wait(); }));
    CHECK(pools[0].available_hint() == 1);
    CHECK(pools[1].available_hint() == 1);
    gate.set();
  }
}

FIBER_TEST_CASE("a closed pool set refuses tasks, and a pool set needs at least one pool") {
  PoolSet pools(2, {.capacity = 1});
  CHECK(pools.size() == 2);
  pools.close(Close::drain);
  pools.join();
  CHECK(pools.submit([] {}) == Errc::closed);
  CHECK_THROWS_AS(PoolSet(0, {}), std::invalid_argument);
}

TEST_SUITE_END();

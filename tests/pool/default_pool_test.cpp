// Tests the default pool, which no caller constructs. Each run of a case uses a new Runtime.
#include <atomic>
#include <thread>
#include <vector>
#include <weft/go.hpp>
#include <weft/runtime.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"

using namespace weft;
using namespace weft::test;

TEST_SUITE_BEGIN("pool/default_pool");

FIBER_TEST_CASE(
    "default_pool() returns the same pool in every fiber, and the pool never exceeds its "
    "capacity") {
  constexpr int kTasks = 200;
  FiberPool& pool = default_pool();
  Concurrency gauge;
  std::atomic<int> ran{0};
  std::vector<JoinHandle<void>> submitters;
  for (int s = 0; s < 4; ++s) {
    submitters.push_back(spawn([&] {
      for (int i = 0; i < kTasks; ++i) {
        CHECK(default_pool().submit([&] {
          const Concurrency::Stay stay(gauge);
          this_fiber::yield();
          ran.fetch_add(1);
        }));
      }
    }));
  }
  for (auto& submitter : submitters) submitter.join();
  pool.wait_idle();
  CHECK(&pool == &default_pool());
  CHECK(ran.load() == 4 * kTasks);
  CHECK(gauge.most() <= pool.capacity());
  CHECK(balanced(pool.stats()));
}

FIBER_TEST_CASE("the default pool has no fibers while it is idle") {
  const std::uint64_t before = runtime.stats().live;
  CHECK(default_pool().run([] { return 7; }) == 7);
  wait_until_true([&] { return runtime.stats().live == before; });
}

TEST_CASE("the default pool refuses tasks when no runtime exists") {
  CHECK(default_pool().submit([] {}) == Errc::no_runtime);
  // With a runtime, the pool accepts tasks again.
  CHECK(weft::run([] { return default_pool().run([] { return 1; }); }) == 1);
}

TEST_SUITE_END();

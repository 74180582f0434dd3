// A pool that was made outside of run() kept the runtime from its end for up to two of its
// idle_timeouts, and forever with min_workers.
#include <atomic>
#include <chrono>
#include <memory>
#include <weft/go.hpp>
#include <weft/pool.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"

namespace {

using namespace std::chrono_literals;
using namespace weft;

TEST_SUITE_BEGIN("pool/outlives_runtime");

// By the test's deadline: a runtime that waited for an idle_timeout would not end before.
void run_twice_with(FiberPool& pool) {
  for (const unsigned workers : {1u, 2u}) {
    std::atomic<int> ran{0};
    {
      Runtime runtime({.workers = workers});
      runtime.run([&] {
        for (int i = 0; i < 20; ++i) pool.go([&] { ++ran; });
        pool.wait_idle();
      });
      // A fiber that goes on while the runtime ends makes workers idle again.
      runtime.go([&] {
        this_fiber::sleep_for(1ms);
        for (int i = 0; i < 20; ++i) pool.go([&] { ++ran; });
      });
    }
    CHECK(ran == 40);
    CHECK(pool.stats().live == 0);
  }
}

TEST_CASE("a runtime ends with the last task of a pool whose workers would idle forever") {
  const test::TestGuard guard("pool_outlives_runtime");
  FiberPool pool({.capacity = 4, .min_workers = 2, .queue_capacity = 100, .idle_timeout = kNever});
  run_twice_with(pool);
}

TEST_CASE("a runtime does not wait for an idle_timeout") {
  const test::TestGuard guard("pool_outlives_runtime");
  FiberPool pool({.capacity = 4, .queue_capacity = 100, .idle_timeout = 24h});
  run_twice_with(pool);
}

TEST_SUITE_END();

}  // namespace

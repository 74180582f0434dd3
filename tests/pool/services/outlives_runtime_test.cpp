// Regression test: a pool that was made outside of run() delayed the end of the runtime by up to
// two of its idle_timeouts, and with min_workers forever.
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

// The test's deadline checks it: a runtime that waited for an idle_timeout would end too late.
void run_twice_with(FiberPool& pool) {
  for (const unsigned workers : {1u, 2u}) {
    std::atomic<int> ran{0};
    {
      Runtime runtime({.workers = workers});
      runtime.run([&] {
        for (int i = 0; i < 20; ++i) pool.go([&] { ++ran; });
        pool.wait_idle();
      });
      // A fiber that continues while the runtime ends makes workers idle again.
      runtime.go([&] {
        this_fiber::sleep_for(1ms);
        for (int i = 0; i < 20; ++i) pool.go([&] { ++ran; });
      });
    }
    CHECK(ran == 40);
    CHECK(pool.stats().live == 0);
  }
}

TEST_CASE("a runtime ends after a pool's last task even when the pool's idle_timeout is kNever") {
  const test::TestGuard guard("pool_outlives_runtime");
  FiberPool pool({.capacity = 4, .min_workers = 2, .queue_capacity = 100, .idle_timeout = kNever});
  run_twice_with(pool);
}

TEST_CASE("a runtime ends without waiting for the idle_timeout of a pool") {
  const test::TestGuard guard("pool_outlives_runtime");
  FiberPool pool({.capacity = 4, .queue_capacity = 100, .idle_timeout = 24h});
  run_twice_with(pool);
}

TEST_SUITE_END();

}  // namespace

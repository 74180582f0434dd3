// Regression test: in a runtime with one worker, the queue of a spare worker was closed to thieves.
// Fibers in that queue waited while the spare was blocked. The worker that had come back treated
// the spare as running, napped forever, and did not report that the runtime was idle.
#include <atomic>
#include <chrono>
#include <thread>
#include <weft/detail/own_runtime.hpp>
#include <weft/go.hpp>
#include <weft/runtime.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/fiber_test.hpp"

namespace {

using namespace std::chrono_literals;

// Blocks one more thread on each level, until the innermost fiber has run.
void block_until_innermost(int levels, weft::WaitGroup& all, std::atomic<bool>& innermost_ran) {
  all.add();
  weft::go([levels, &all, &innermost_ran] {
    if (levels == 0) {
      innermost_ran.store(true);
    } else {
      block_until_innermost(levels - 1, all, innermost_ran);
      while (!innermost_ran.load()) std::this_thread::sleep_for(1ms);
    }
    all.done();
  });
}

TEST_SUITE_BEGIN("scheduler/spare_queue");

FIBER_TEST_CASE("another worker runs the fibers that a blocked spare worker has queued") {
  std::atomic<bool> innermost_ran{false};
  weft::WaitGroup all;
  block_until_innermost(static_cast<int>(weft::detail::concurrency()) + 2, all, innermost_ran);
  all.wait();
  CHECK(innermost_ran.load());
}

THREAD_TEST_CASE("a runtime counts as idle while its unused spare worker is asleep") {
  for (int round = 0; round < 3; ++round) {
    std::atomic<bool> innermost_ran{false};
    weft::WaitGroup all;
    runtime.run([&] {
      block_until_innermost(static_cast<int>(weft::detail::concurrency()) + 1, all, innermost_ran);
      all.wait();
    });
    runtime.go([] {});
    CHECK(runtime.wait_idle_for(60s));
  }
}

TEST_SUITE_END();

}  // namespace

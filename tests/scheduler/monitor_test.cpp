// What the monitor does for those who wait behind a fiber that keeps its worker.
#include <atomic>
#include <chrono>
#include <weft/detail/atomic.hpp>
#include <weft/go.hpp>
#include <weft/runtime.hpp>
#include <weft/timer.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/fiber_test.hpp"

namespace {

using namespace std::chrono_literals;

// Keeps all workers but the caller's, each with a fiber that computes until `done`.
void keep_other_workers(weft::Runtime& runtime, weft::WaitGroup& group,
                        const std::atomic<bool>& done) {
  std::atomic<unsigned> kept{1};
  for (unsigned i = 1; i < runtime.workers(); ++i) {
    group.go([&] {
      ++kept;
      while (!done) weft::detail::pause_cpu();
    });
  }
  while (kept < runtime.workers()) weft::detail::pause_cpu();
}

TEST_SUITE_BEGIN("scheduler/monitor");

// Who computes goes on until it has been helped; so without help it hangs until the deadline.
FIBER_TEST_CASE_WITH("while all workers compute, a spare one runs what is queued",
                     {.monitored = true}) {
  std::atomic<bool> done{false};
  weft::WaitGroup group;
  keep_other_workers(runtime, group, done);
  weft::go([&] { done = true; });
  while (!done) weft::detail::pause_cpu();
  group.wait();
}

FIBER_TEST_CASE_WITH("while all workers compute, a spare one sees to timers", {.monitored = true}) {
  std::atomic<bool> done{false};
  weft::WaitGroup group;
  keep_other_workers(runtime, group, done);
  const auto call = weft::call_after(1ms, [&] { done = true; });
  while (!done) weft::detail::pause_cpu();
  group.wait();
}

TEST_SUITE_END();

}  // namespace

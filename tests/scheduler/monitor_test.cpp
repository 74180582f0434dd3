// Tests the monitor's help for fibers that wait behind a fiber that keeps its worker.
#include <atomic>
#include <chrono>
#include <weft/detail/atomic.hpp>
#include <weft/go.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>
#include <weft/timer.hpp>
#include <weft/wait_group.hpp>

#include "scheduler/scheduler.hpp"
#include "tests/support/fiber_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::scheduler::Scheduler;

// Occupies all workers except the caller's, each with a fiber that computes until `done`.
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

// A computing fiber continues until the monitor has helped, so without help the case hangs until
// its deadline.
FIBER_TEST_CASE_WITH(
    "a spare worker runs the queued fibers while fibers are computing on all workers",
    {.monitored = true}) {
  std::atomic<bool> done{false};
  weft::WaitGroup group;
  keep_other_workers(runtime, group, done);
  weft::go([&] { done = true; });
  while (!done) weft::detail::pause_cpu();
  group.wait();
}

FIBER_TEST_CASE_WITH("a spare worker fires the timers while fibers are computing on all workers",
                     {.monitored = true}) {
  std::atomic<bool> done{false};
  weft::WaitGroup group;
  keep_other_workers(runtime, group, done);
  const auto call = weft::call_after(1ms, [&] { done = true; });
  while (!done) weft::detail::pause_cpu();
  group.wait();
}

FIBER_TEST_CASE_WITH(
    "a second spare worker runs the queued fibers while the first spare worker is busy computing",
    {.monitored = true}) {
  std::atomic<bool> done{false};
  weft::WaitGroup group;
  keep_other_workers(runtime, group, done);
  group.go([&] {
    group.go([&] { done = true; });
    while (!done) weft::detail::pause_cpu();
  });
  while (!done) weft::detail::pause_cpu();
  group.wait();
}

FIBER_TEST_CASE_WITH(
    "spare workers leave when they are not needed and return when they are needed again",
    {.monitored = true}) {
  const Scheduler& scheduler = *Scheduler::current();
  for (int round = 0; round < 3; ++round) {
    std::atomic<bool> done{false};
    weft::WaitGroup group;
    keep_other_workers(runtime, group, done);
    group.go([&] { done = true; });
    while (!done) weft::detail::pause_cpu();
    group.wait();
    while (scheduler.shared().active().surplus() != 0) weft::this_fiber::yield();
  }
}

FIBER_TEST_CASE_WITH(
    "no spare worker starts for a worker that is busy computing while no other fiber is ready",
    {.monitored = true}) {
  Scheduler& scheduler = *Scheduler::current();
  while (scheduler.monitor().busy_stalls() == 0) weft::detail::pause_cpu();
  CHECK(scheduler.shared().desks().size() == runtime.workers());
}

TEST_SUITE_END();

}  // namespace

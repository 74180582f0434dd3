// Tests that a sleeping worker is notified at once of each fiber that becomes ready, in whatever
// way. The worker runs the fiber while its waker computes without a call to weft.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/runtime.hpp>

#include "base/thread.hpp"
#include "scheduler/scheduler.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/parked.hpp"

namespace {

using weft::scheduler::Scheduler;

// Waits until the worker that does not run the caller sleeps.
void await_sleeper() {
  const weft::scheduler::Shared& shared = Scheduler::current()->shared();
  const auto is_asleep = [&](const weft::scheduler::Desk* desk) { return shared.is_asleep(*desk); };
  while (std::ranges::none_of(shared.desks(), is_asleep)) weft::base::yield_processor();
}

void compute_until(const std::atomic<bool>& ran) {
  while (!ran) weft::base::yield_processor();
}

TEST_SUITE_BEGIN("scheduler/announce");

// A sleeping worker may wake by itself at this moment to search for deadlocks, so the case repeats
// until a worker is woken. That search also finds unannounced fibers: without the wake, they would
// wait until their deadline.
FIBER_TEST_CASE_WITH("a sleeping worker is woken when a fiber is spawned",
                     {.workers = {2}, .options = {.monitor = false}}) {
  for (bool is_told = false; !is_told;) {
    std::atomic<bool> ran{false};
    await_sleeper();
    const std::uint64_t before = runtime.stats().worker_wakeups;
    weft::go([&] { ran = true; });
    is_told = runtime.stats().worker_wakeups != before;
    compute_until(ran);
  }
}

FIBER_TEST_CASE_WITH("a sleeping worker is woken when a parked fiber becomes ready",
                     {.workers = {2}, .options = {.monitor = false}}) {
  for (bool is_told = false; !is_told;) {
    std::atomic<bool> ran{false};
    weft::Event event;
    auto waiter = weft::spawn([&] {
      event.wait();
      ran = true;
    });
    weft::test::await_parked(runtime, "event");
    await_sleeper();
    const std::uint64_t before = runtime.stats().worker_wakeups;
    event.set();
    is_told = runtime.stats().worker_wakeups != before;
    compute_until(ran);
    waiter.join();
  }
}

TEST_SUITE_END();

}  // namespace

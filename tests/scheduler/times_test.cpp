// How long workers have been there, and for how much of that they were asleep.
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>

#include "scheduler/scheduler.hpp"
#include "scheduler/worker.hpp"
#include "tests/support/fiber_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::scheduler::Scheduler;

TEST_SUITE_BEGIN("scheduler/times");

FIBER_TEST_CASE("a worker that began, or went to sleep, after the moment asked for took no time") {
  weft::this_fiber::sleep_for(2ms);  // The others are asleep.
  for (const auto& worker : Scheduler::current()->workers()) {
    const auto before = worker->times(1);
    CHECK(before.life == 0);
    CHECK(before.parked >= 0);
  }
}

TEST_SUITE_END();

}  // namespace

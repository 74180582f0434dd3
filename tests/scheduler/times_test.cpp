// How long workers have been there, and for how much of that they were asleep.
#include <cstdint>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>

#include "scheduler/sampler.hpp"
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

TEST_CASE("the last bucket of durations takes all that are longer than any other does") {
  weft::scheduler::Durations durations;
  constexpr auto kLast = weft::scheduler::Durations::kBuckets - 1;
  durations.record(-1);
  durations.record(0);
  CHECK(durations.count(0) == 2);
  for (const std::size_t bits : {kLast - 2, kLast - 1, kLast, kLast + 1, std::size_t{62}}) {
    durations.record(std::int64_t{1} << bits);
  }
  CHECK(durations.count(kLast - 1) == 1);
  CHECK(durations.count(kLast) == 4);
  CHECK(durations.max() == std::uint64_t{1} << 62);
  CHECK(durations.sum() == (std::uint64_t{1} << 62) + (std::uint64_t{15} << (kLast - 2)));
}

TEST_SUITE_END();

}  // namespace

// Tests how long workers have existed, and how long fibers wait and run.
#include <cstdint>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>

#include "fibers/fiber.hpp"
#include "scheduler/record/sampler.hpp"
#include "scheduler/scheduler.hpp"
#include "tests/support/fiber_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::scheduler::Durations;
using weft::scheduler::Sampler;
using weft::scheduler::Scheduler;

std::uint64_t count_of(const Durations& durations) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < Durations::kBuckets; ++i) count += durations.count(i);
  return count;
}

TEST_SUITE_BEGIN("scheduler/times");

FIBER_TEST_CASE("a worker reports no negative times when the given moment is before its start") {
  weft::this_fiber::sleep_for(2ms);  // The other workers sleep.
  for (const weft::scheduler::Desk* desk : Scheduler::current()->shared().desks()) {
    const auto before = desk->recorder.times(1);
    CHECK(before.life == 0);
    CHECK(before.parked >= 0);
  }
}

TEST_CASE(
    "the last bucket of a histogram counts all durations that are too long for the other buckets") {
  Durations durations;
  constexpr auto kLast = Durations::kBuckets - 1;
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

TEST_CASE(
    "a sampler measures the first fiber that becomes ready, and ignores others until that fiber "
    "has run") {
  Sampler sampler;
  weft::fibers::Fiber first;
  weft::fibers::Fiber second;
  CHECK(!sampler.ready(first));  // No reader has requested it.
  CHECK(!sampler.run(&first));
  sampler.begin(1);
  CHECK(sampler.is_armed());
  CHECK(!sampler.is_following());
  CHECK(!sampler.run(&second));
  CHECK(sampler.ready(first));
  CHECK(!sampler.is_armed());  // So later ready fibers need no sample.
  CHECK(sampler.is_following());
  CHECK(!sampler.ready(second));
  CHECK(!sampler.run(&second));
  CHECK(!sampler.run(nullptr));
  CHECK(sampler.run(&first));
  CHECK(count_of(sampler.latencies()) == 1);
  CHECK(sampler.is_following());
  CHECK(sampler.run(&second));
  CHECK(!sampler.is_following());
  CHECK(count_of(sampler.runs()) == 1);
  CHECK(!sampler.run(&first));
}

TEST_CASE("the thief's sampler records the run of a fiber that the thief has stolen") {
  Sampler victim;
  Sampler thief;
  weft::fibers::Fiber fiber;
  CHECK(!thief.adopt(victim));
  victim.begin(1);
  CHECK(victim.ready(fiber));
  CHECK(thief.adopt(victim));
  CHECK(thief.run(&fiber));
  CHECK(count_of(thief.latencies()) == 1);
  CHECK(victim.run(nullptr));
  CHECK(!victim.is_following());
  CHECK(count_of(victim.latencies()) == 0);
}

TEST_SUITE_END();

}  // namespace

#include "scheduler/worker/pace.hpp"

#include <doctest/doctest.h>

#include <cstdint>

#include "scheduler/tuning.hpp"

namespace {

using weft::scheduler::Pace;
namespace tuning = weft::scheduler::tuning;

constexpr std::int64_t kMicrosecond = 1'000;
constexpr std::int64_t kMillisecond = 1'000'000;

// Simulates a worker whose fibers run for `each` nanoseconds, and which makes a look after every
// `runs` runs.
struct Runner {
  Pace pace{0, true};
  std::int64_t now = 0;
  std::uint64_t switches = 0;

  Pace::Progress run(std::uint64_t runs, std::int64_t each) {
    now += static_cast<std::int64_t>(runs) * each;
    switches += runs;
    return pace.look(now, switches);
  }
};

TEST_SUITE_BEGIN("scheduler/pace");

TEST_CASE(
    "before its next periodic check, a worker may run as many fibers as fit into one period") {
  Runner runner;
  CHECK(runner.pace.allot(runner.run(10, 10 * kMicrosecond), 50 * kMicrosecond) == 5);
  CHECK(runner.pace.allot(runner.run(1, kMillisecond), 50 * kMicrosecond) == 1);
  CHECK(runner.pace.allot(runner.run(61, 100), 50 * kMicrosecond) == tuning::kMostDecisions);
}

TEST_CASE(
    "a worker's pace excludes idle time, and the worker may run the maximum number of fibers when "
    "it wakes") {
  Runner runner;
  CHECK(runner.pace.allot(runner.run(10, 10 * kMicrosecond), 50 * kMicrosecond) == 5);
  runner.now += 1000 * kMillisecond;
  runner.pace.resume(runner.now, runner.switches);
  CHECK(runner.pace.allotted() == tuning::kMostDecisions);
  const Pace::Progress progress = runner.run(10, 10 * kMicrosecond);
  CHECK(progress.elapsed == 100 * kMicrosecond);
  CHECK(progress.runs == 10);
}

TEST_CASE(
    "a worker with short-running fibers lengthens the pause between calls for help, up to a "
    "maximum") {
  Runner runner;
  std::int64_t last_call = 0;
  std::int64_t pause = 0;
  for (int calls = 0; calls < 10;) {
    (void)runner.run(61, 100);
    if (!runner.pace.may_call()) continue;
    if (calls > 1) CHECK(runner.now - last_call >= pause);
    pause = runner.now - last_call;
    last_call = runner.now;
    runner.pace.note_call(runner.now);
    CHECK(!runner.pace.may_call());
    ++calls;
    // The pause has a bound.
    if (pause > 4 * kMillisecond) pause = 4 * kMillisecond;
  }
  CHECK(pause == 4 * kMillisecond);
  runner.pace.note_waiting();
  CHECK(runner.pace.may_call());
}

TEST_CASE(
    "the only worker of a scheduler calls for help again only after its next periodic check") {
  Runner runner;
  (void)runner.run(61, 100);
  CHECK(runner.pace.may_call());
  runner.pace.note_alone();
  CHECK(!runner.pace.may_call());
  (void)runner.run(61, 100);
  CHECK(runner.pace.may_call());
}

TEST_CASE(
    "a worker may call for help again without a pause when each of its fibers runs for more than "
    "50 us") {
  Runner runner;
  (void)runner.run(3, 60 * kMicrosecond);
  runner.pace.note_call(runner.now);
  CHECK(runner.pace.may_call());
}

TEST_CASE(
    "a worker with short-running fibers reports waiting fibers only if two consecutive periodic "
    "checks find them") {
  Runner runner;
  (void)runner.run(10, 10 * kMicrosecond);
  CHECK(!runner.pace.finds_waiting(50 * kMicrosecond, 4));
  CHECK(!runner.pace.finds_waiting(50 * kMicrosecond, 5));
  CHECK(runner.pace.finds_waiting(50 * kMicrosecond, 5));
  CHECK(!runner.pace.finds_waiting(50 * kMicrosecond, 0));
  CHECK(!runner.pace.finds_waiting(50 * kMicrosecond, 5));
}

TEST_CASE(
    "expects_long_runs() returns true for 100 ms after a long run, and always if there is no "
    "monitor") {
  Runner runner;
  CHECK(!runner.pace.expects_long_runs(0));
  runner.pace.note_long_run(0);
  CHECK(runner.pace.expects_long_runs(99 * kMillisecond));
  CHECK(!runner.pace.expects_long_runs(100 * kMillisecond));
  const Pace unmonitored(0, false);
  CHECK(unmonitored.expects_long_runs(1'000'000 * kMillisecond));
}

TEST_SUITE_END();

}  // namespace

// Tests the measured times for which tasks wait and run.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/histogram.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"
#include "tests/support/sim_test.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using std::chrono::nanoseconds;

namespace {

// Returns the lower bound of a percentile of sorted durations.
nanoseconds exact(const std::vector<nanoseconds>& sorted, double percent) {
  const double rank = std::ceil(percent / 100 * static_cast<double>(sorted.size()));
  return sorted[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

}  // namespace

TEST_SUITE_BEGIN("pool/timings");

TEST_CASE("an empty histogram returns 0 for all values") {
  const Histogram none;
  CHECK(none.count() == 0);
  CHECK(none.min() == 0ns);
  CHECK(none.max() == 0ns);
  CHECK(none.mean() == 0ns);
  CHECK(none.percentile(50) == 0ns);
}

TEST_CASE(
    "a histogram's percentiles are accurate to within one eighth, and its other values are exact") {
  Random random;
  for (int round = 0; round < 20; ++round) {
    Histogram whole, one, other;
    std::vector<nanoseconds> all;
    std::int64_t sum = 0;
    for (int i = 0; i < 1000; ++i) {
      // Durations have all magnitudes.
      const nanoseconds duration(static_cast<std::int64_t>(random() >> (12 + random() % 51)));
      all.push_back(duration);
      whole.record(duration);
      (i % 3 == 0 ? one : other).record(duration);
      sum += duration.count();
    }
    std::sort(all.begin(), all.end());
    one.merge(other);
    for (const Histogram* histogram : {&whole, &one}) {
      CHECK(histogram->count() == 1000);
      CHECK(histogram->min() == all.front());
      CHECK(histogram->max() == all.back());
      CHECK(histogram->mean().count() == sum / 1000);
      for (const double percent : {0.0, 0.05, 1.0, 10.0, 50.0, 90.0, 99.0, 99.95, 100.0, 200.0}) {
        const nanoseconds at_least = exact(all, std::min(percent, 100.0));
        const nanoseconds told = histogram->percentile(percent);
        CHECK(told >= at_least);
        CHECK(static_cast<double>(told.count()) <= 1.125 * static_cast<double>(at_least.count()));
      }
    }
  }
}

TEST_CASE("a histogram has a bucket for every duration from the shortest to the longest") {
  Histogram histogram;
  histogram.record(-5ns);
  CHECK(histogram.max() == 0ns);
  for (int i = 0; i < 64; ++i) histogram.record(nanoseconds(INT64_C(1) << std::min(i, 62)));
  histogram.record(nanoseconds::max());
  CHECK(histogram.percentile(0) == 0ns);
  CHECK(histogram.percentile(100) == nanoseconds::max());
  CHECK(histogram.count() == 66);
}

SIM_TEST_CASE("a pool with timings measures how long its tasks wait and run") {
  weft::Event release;
  const auto begin = world.now();
  FiberPool pool({.capacity = 1, .queue_capacity = 10, .timings = true});
  CHECK(pool.timings().run_time.count() == 0);
  CHECK(pool.timings().total == 0ns);
  CHECK(pool.submit([&] { release.wait(); }));
  for (int i = 0; i < 3; ++i) CHECK(pool.submit([] {}));
  const auto submitted = world.now();
  this_fiber::sleep_for(20h);
  const auto released = world.now();
  release.set();
  pool.wait_idle();
  const auto whole = world.now() - begin;
  const PoolTimings timings = pool.timings();
  CHECK(timings.queue_wait.count() == 4);
  CHECK(timings.run_time.count() == 4);
  // Three tasks have waited, and one has run, until the event was set.
  CHECK(timings.queue_wait.percentile(60) >= released - submitted);
  CHECK(timings.queue_wait.max() <= whole);
  CHECK(timings.first >= released - submitted);
  CHECK(timings.first <= timings.total);
  CHECK(timings.total <= whole);
  CHECK(timings.average == timings.total / 4);
}

SIM_TEST_CASE("a task's measured wait includes the time during which submit() waited for room") {
  weft::Event release;
  FiberPool pool({.capacity = 1, .timings = true});
  CHECK(pool.submit([&] { release.wait(); }));
  auto blocked = spawn([&] { CHECK(pool.submit([] {})); });
  sim::settle();
  CHECK(pool.stats().blocked == 1);
  const auto parked = world.now();
  this_fiber::sleep_for(10h);
  const auto released = world.now();
  release.set();
  blocked.join();
  pool.wait_idle();
  CHECK(pool.timings().queue_wait.max() >= released - parked);
}

FIBER_TEST_CASE(
    "a pool measures every task that runs, even if it throws, but does not measure dropped tasks") {
  weft::test::Flag release;
  const auto begin = Clock::now();
  FiberPool pool({.capacity = 1,
                  .queue_capacity = 3,
                  .on_full = OnFull::caller_runs,
                  .on_exception = [](std::exception_ptr) {},
                  .timings = true});
  CHECK(pool.submit([] { throw 1; }));
  CHECK(pool.run([] { return 1; }) == 1);
  CHECK(pool.async([] { return 1; }).get() == 1);
  CHECK(pool.submit({.priority = Priority::high}, [] {}));
  CHECK(pool.submit({.key = TaskKey(7)}, [] {}));
  pool.wait_idle();
  CHECK(pool.timings().run_time.count() == 5);
  // Tasks with options also have time stamps.
  CHECK(pool.timings().queue_wait.max() <= Clock::now() - begin);
  CHECK(pool.submit([&] { release.wait(); }));
  wait_until_true([&] { return pool.stats().busy == 1; });
  for (int i = 0; i < 3; ++i) CHECK(pool.submit([] {}));
  CHECK(pool.submit([] {}));  // The caller runs it.
  CHECK(pool.timings().run_time.count() == 6);
  pool.close(Close::discard);
  release.set();
  pool.join();
  CHECK(pool.timings().run_time.count() == 7);
  CHECK(pool.timings().run_time.count() == pool.stats().completed + pool.stats().failed);
}

FIBER_TEST_CASE("a pool measures tasks that waited for room and tasks of submit_bulk()") {
  FiberPool pool({.capacity = 4, .queue_capacity = 4, .timings = true});
  std::vector<JoinHandle<void>> submitters;
  for (int i = 0; i < 8; ++i) {
    submitters.push_back(spawn([&] {
      for (int n = 0; n < 10; ++n) CHECK(pool.submit([] { this_fiber::yield(); }));
      CHECK(pool.submit_bulk(std::vector<void (*)()>(20, [] { this_fiber::yield(); })).value == 20);
    }));
  }
  for (auto& submitter : submitters) submitter.join();
  pool.wait_idle();
  const PoolTimings timings = pool.timings();
  CHECK(timings.run_time.count() == 240);
  CHECK(timings.queue_wait.count() == 240);
  CHECK(timings.queue_wait.max() <= timings.total);
  CHECK(timings.first <= timings.total);
}

FIBER_TEST_CASE("a pool without the timings option measures no time") {
  FiberPool pool({.capacity = 1});
  pool.run([] {});
  CHECK(pool.timings().run_time.count() == 0);
  CHECK(pool.timings().total == 0ns);
}

TEST_SUITE_END();

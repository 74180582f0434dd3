// G8: the reuse and retirement of idle workers.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/metrics.hpp>
#include <weft/wait_group.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/sim_test.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

namespace {

// Returns the number of workers of all pools that are parked without a task.
std::uint64_t parked_workers() {
  const metrics::Reading reading = metrics::read();
  for (const auto& parked : reading.runtimes.at(0).parked) {
    if (parked.reason == std::string_view("pool idle")) return parked.count;
  }
  return 0;
}
// Lets other fibers run until each worker of the only pool is parked. A caller may see the end of a
// task before the worker parks, and the worker counts as idle before it parks.
void wait_until_idle(const FiberPool& pool) {
  if (sim::is_simulated()) return sim::settle();
  wait_until_true([&] { return parked_workers() == pool.stats().idle; });
}

// Starts workers until `count` are live and idle. Returns their fibers in the order in which they
// became idle.
std::vector<std::uint64_t> warm_up(FiberPool& pool, std::size_t count) {
  std::vector<weft::Event> go_on(count);
  std::vector<std::uint64_t> fibers(count);
  WaitGroup all_here;
  all_here.add(count);
  std::vector<PoolTask<void>> tasks;
  for (std::size_t i = 0; i < count; ++i) {
    tasks.push_back(pool.async([&, i] {
      fibers[i] = this_fiber::id();
      all_here.done();
      go_on[i].wait();
    }));
  }
  all_here.wait();
  for (std::size_t i = 0; i < count; ++i) {
    go_on[i].set();
    tasks[i].wait();
    wait_until_idle(pool);
  }
  return fibers;
}

}  // namespace

TEST_SUITE_BEGIN("pool/idle");

FIBER_TEST_CASE("tasks submitted one after another run on the same worker") {
  FiberPool pool({.capacity = 8, .idle_timeout = kNever});
  const std::vector<std::uint64_t> fibers = warm_up(pool, 8);
  std::set<std::uint64_t> used;
  for (int i = 0; i < 100; ++i) {
    used.insert(pool.run([] { return this_fiber::id(); }));
    if (i % 2 == 0) wait_until_idle(pool);  // Otherwise it may not be parked yet.
  }
  CHECK(used == std::set{fibers.back()});
  CHECK(pool.stats().started == 8);
}

FIBER_TEST_CASE(
    "with WakeOrder::fifo, idle workers take turns at running tasks, and the longest idle worker "
    "retires first") {
  FiberPool pool({.capacity = 8, .wake_order = WakeOrder::fifo, .idle_timeout = kNever});
  const std::vector<std::uint64_t> fibers = warm_up(pool, 8);
  for (const std::uint64_t fiber : fibers) {
    CHECK(pool.run([] { return this_fiber::id(); }) == fiber);
    wait_until_idle(pool);
  }
  // The most recently used worker is retired last.
  const std::uint64_t last = pool.run([] {
    this_fiber::yield();
    return this_fiber::id();
  });
  wait_until_idle(pool);
  pool.resize(1);
  CHECK(pool.stats().started == 8);
  CHECK(pool.run([] { return this_fiber::id(); }) == last);
}

SIM_TEST_CASE("idle workers beyond min_workers retire after the idle timeout, and not before") {
  FiberPool pool({.capacity = 6, .min_workers = 2, .idle_timeout = 24h});
  (void)warm_up(pool, 6);
  world.run_for(24h - 1s);
  CHECK(pool.stats().live == 6);
  world.run_for(24h + 2s);
  CHECK(pool.stats().live == 2);
  world.run_for(24h * 30);
  CHECK(pool.stats().live == 2);
  CHECK(pool.stats().retired == 4);
}

SIM_TEST_CASE("a constantly used worker does not retire when idle workers retire") {
  FiberPool pool({.capacity = 4, .idle_timeout = 10min});
  const std::vector<std::uint64_t> fibers = warm_up(pool, 4);
  // The most recently used worker is used all the time, so it stays.
  for (int i = 0; i < 40; ++i) {
    CHECK(pool.run([] { return this_fiber::id(); }) == fibers.back());
    world.run_for(1min);
  }
  CHECK(pool.stats().live == 1);
  CHECK(pool.stats().started == 4);
}

SIM_TEST_CASE("workers that have been idle longest retire first") {
  FiberPool pool({.capacity = 4, .min_workers = 2, .idle_timeout = 1h});
  const auto fibers = warm_up(pool, 4);
  world.run_for(3h);
  CHECK(pool.stats().live == 2);
  Mutex mutex;
  std::set<std::uint64_t> left;
  WaitGroup both_here;
  both_here.add(2);
  for (int i = 0; i < 2; ++i) {
    CHECK(pool.submit([&] {
      {
        const std::lock_guard guard(mutex);
        left.insert(this_fiber::id());
      }
      both_here.done();
      both_here.wait();
    }));
  }
  pool.wait_idle();
  CHECK(left == std::set{fibers[2], fibers[3]});
}

FIBER_TEST_CASE("an unused pool has no fiber after its idle timeout") {
  FiberPool pool({.capacity = 4, .queue_capacity = 4, .idle_timeout = 1ms});
  for (int i = 0; i < 8; ++i) CHECK(pool.submit([] {}));
  wait_until_true([&] {
    this_fiber::sleep_for(1ms);
    const RuntimeStats stats = runtime.stats();
    return pool.stats().live == 0 && stats.live == 1;
  });
  CHECK(pool.run([] { return 1; }) == 1);
}

FIBER_TEST_CASE(
    "a pool runs no fiber besides its workers when only min_workers idle workers are left") {
  FiberPool pool({.capacity = 4, .min_workers = 2, .idle_timeout = 1ms});
  (void)warm_up(pool, 4);
  wait_until_true([&] {
    this_fiber::sleep_for(1ms);
    return pool.stats().live == 2 && runtime.stats().live == 3;
  });
}

FIBER_TEST_CASE("a pool without an idle timeout retires no worker") {
  FiberPool pool({.capacity = 3, .idle_timeout = kNever});
  (void)warm_up(pool, 3);
  CHECK(pool.stats().live == 3);
  wait_until_true([&] { return runtime.stats().live == 4; });
}

FIBER_TEST_CASE("no task is lost or refused when workers retire during submissions") {
  const int rounds = 400 / static_cast<int>(kSlowdown);
  std::atomic<int> ran{0};
  FiberPool pool({.capacity = 4, .on_full = OnFull::reject, .idle_timeout = 100us});
  for (int i = 0; i < rounds; ++i) {
    for (int n = 0; n < 4; ++n) pool.run([&] { ran.fetch_add(1); });
    this_fiber::sleep_for(std::chrono::microseconds(50 + i % 300));
    CHECK(pool.stats().live <= 4);
  }
  CHECK(ran.load() == 4 * rounds);
  CHECK(pool.stats().rejected == 0);
}

FIBER_TEST_CASE(
    "prestarted workers exist before the first task is submitted, even after a reopen") {
  FiberPool pool({.capacity = 4, .min_workers = 3, .prestart = true});
  CHECK(pool.stats().live == 3);
  CHECK(pool.run([] { return 1; }) == 1);
  CHECK(pool.stats().started == 3);
  pool.close(Close::drain);
  pool.join();
  CHECK(pool.stats().live == 0);
  pool.reopen();
  CHECK(pool.stats().live == 3);
}

TEST_CASE("the constructor of a pool throws if its prestarted workers cannot be spawned") {
  CHECK_THROWS_AS(FiberPool({.capacity = 4, .min_workers = 3, .prestart = true}),
                  std::system_error);
}

FIBER_TEST_CASE("join() does not wait for the idle timeout") {
  FiberPool pool({.capacity = 4, .idle_timeout = std::chrono::hours(1)});
  (void)warm_up(pool, 4);
  pool.close(Close::drain);
  pool.join();
  CHECK(pool.stats().live == 0);
}

TEST_SUITE_END();

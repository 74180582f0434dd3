// Tests when workers are started, and how many may live.
#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <vector>
#include <weft/event.hpp>
#include <weft/go.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/sim_test.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

TEST_SUITE_BEGIN("pool/growth");

FIBER_TEST_CASE(
    "a pool with GrowPolicy::eager starts all workers for the first task, and starts no more "
    "workers later") {
  FiberPool pool({.capacity = 6, .grow = GrowPolicy::eager(), .idle_timeout = kNever});
  CHECK(pool.stats().started == 0);
  pool.run([] {});
  CHECK(pool.stats().started == 6);
  CHECK(pool.stats().live == 6);
  for (int i = 0; i < 20; ++i) pool.run([] {});
  CHECK(pool.stats().started == 6);
}

FIBER_TEST_CASE("a pool with GrowPolicy::eager refuses a resize to an unlimited capacity") {
  FiberPool pool({.capacity = 2, .grow = GrowPolicy::eager()});
  CHECK_THROWS_AS(pool.resize(kUnlimited), std::invalid_argument);
  CHECK(pool.capacity() == 2);
  CHECK(pool.run([] { return 1; }) == 1);
}

FIBER_TEST_CASE("a pool with GrowPolicy::eager can be closed while its workers are starting") {
  for (int i = 0; i < 20; ++i) {
    FiberPool pool({.capacity = 20, .grow = GrowPolicy::eager()});
    auto closer = spawn([&] { pool.close(Close::drain); });
    std::atomic<int> ran{0};
    const bool accepted = bool(pool.submit([&] { ran.fetch_add(1); }));
    closer.join();
    pool.join();
    CHECK(ran.load() == (accepted ? 1 : 0));
    CHECK(pool.stats().started <= 20);
    CHECK(pool.stats().retired == pool.stats().started);
  }
}

FIBER_TEST_CASE(
    "with load_factor, the number of workers grows in steps up to the capacity when the load is "
    "too high") {
  weft::test::Flag release;
  Concurrency concurrency;
  FiberPool pool({.capacity = 10,
                  .grow = GrowPolicy::load_factor({.up = 4, .down = 1, .step = 2, .interval = 1h}),
                  .queue_capacity = kUnlimited});
  const auto submit = [&](int count) {
    for (int i = 0; i < count; ++i) {
      CHECK(pool.submit([&] {
        const Concurrency::Stay stay(concurrency);
        release.wait();
      }));
    }
  };
  submit(4);
  CHECK(pool.stats().started == 1);  // 4 tasks do not exceed 4 per worker.
  submit(8);
  CHECK(pool.stats().started == 3);  // 12 tasks are 4 for each of 3 workers.
  submit(1);
  CHECK(pool.stats().started >= 4);
  CHECK(pool.stats().started <= 5);
  submit(800);
  CHECK(pool.stats().started == 10);
  release.set();
  pool.wait_idle();
  CHECK(pool.stats().completed == 813);
  CHECK(concurrency.most() <= 10);
}

SIM_TEST_CASE(
    "with load_factor, the maximum number of workers falls with the load, down to min_workers") {
  for (const std::size_t kept : {0u, 3u}) {
    weft::Event release;
    weft::Event again;
    FiberPool pool(
        {.capacity = 8,
         .grow = GrowPolicy::load_factor({.up = 1, .down = 0.5, .step = 3, .interval = 1min}),
         .min_workers = kept,
         .queue_capacity = 100,
         .idle_timeout = kNever});
    for (int i = 0; i < 50; ++i) CHECK(pool.submit([&] { release.wait(); }));
    CHECK(world.run_until([&] { return pool.stats().busy == 8; }, 10min, 1s));
    release.set();
    pool.wait_idle();
    world.run_for(1h);
    CHECK(pool.stats().live == std::max<std::size_t>(kept, 1));
    CHECK(pool.stats().completed == 50);
    // The pool grows again.
    for (int i = 0; i < 50; ++i) CHECK(pool.submit([&] { again.wait(); }));
    CHECK(world.run_until([&] { return pool.stats().busy == 8; }, 10min, 1s));
    again.set();
  }
}

FIBER_TEST_CASE("surplus workers leave after their task when the load of the pool falls") {
  std::atomic<bool> stop{false};
  weft::test::Flag release;
  FiberPool pool({.capacity = 8,
                  .grow = GrowPolicy::load_factor({.up = 8, .down = 4, .step = 1, .interval = 1ms}),
                  .queue_capacity = kUnlimited,
                  .idle_timeout = kNever});
  for (int i = 0; i < 100; ++i) CHECK(pool.submit([&] { release.wait(); }));
  wait_until_true([&] { return pool.stats().live == 8; });
  release.set();
  // A load of about 8, which is allowed for one worker. Some task is always queued, so no worker is
  // idle.
  std::vector<JoinHandle<void>> callers;
  for (int i = 0; i < 8; ++i) {
    callers.push_back(spawn([&] {
      while (!stop.load()) pool.run([] { this_fiber::yield(); });
    }));
  }
  wait_until_true([&] { return pool.stats().live <= 3; });
  stop.store(true);
  for (auto& caller : callers) caller.join();
}

SIM_TEST_CASE("the number of a pool's workers follows a load that rises and falls") {
  FiberPool pool(
      {.capacity = 20,
       .grow = GrowPolicy::load_factor({.up = 2, .down = 1, .step = 2, .interval = 1min}),
       .queue_capacity = kUnlimited,
       .idle_timeout = 10min});
  // By day, a task of 32 s comes every 4 s; by night, one comes every 10 minutes.
  const auto run_for = [&](std::chrono::hours time, std::chrono::seconds pause) {
    for (const auto end = world.now() + time; world.now() < end; world.run_for(pause)) {
      CHECK(pool.submit([] { this_fiber::sleep_for(32s); }));
    }
  };
  for (int day = 0; day < 2; ++day) {
    run_for(2h, 4s);
    CHECK(pool.stats().live >= 4);
    CHECK(pool.stats().live <= 12);
    CHECK(pool.stats().queued <= 40);
    run_for(22h, 10min);
    CHECK(pool.stats().live <= 2);
  }
  pool.wait_idle();
  CHECK(balanced(pool.stats()));
}

SIM_TEST_CASE("load_factor adds a worker at each interval when each task waits for the next task") {
  for (const bool closed : {false, true}) {
    std::atomic<int> ran{0};
    std::vector<weft::Event> done(5);
    FiberPool pool(
        {.capacity = 5,
         .grow = GrowPolicy::load_factor({.up = 1000, .down = 1, .interval = closed ? 24h : 1h}),
         .queue_capacity = 10});
    // Each task waits for the task behind it.
    for (std::size_t i = 0; i < 5; ++i) {
      CHECK(pool.submit([&, i] {
        if (i < 4) done[i + 1].wait();
        ran.fetch_add(1);
        done[i].set();
      }));
    }
    if (closed) {
      CHECK(pool.stats().started == 1);
      pool.close(Close::drain);
      pool.join();
    } else {
      pool.wait_idle();
    }
    CHECK(ran.load() == 5);
  }
}

FIBER_TEST_CASE(
    "a pool with load_factor refuses no task while it is below its capacity, and completes nested "
    "run() calls") {
  weft::test::Flag release;
  FiberPool pool(
      {.capacity = 6,
       .grow = GrowPolicy::load_factor({.up = 3, .down = 1, .step = 1, .interval = 1ms})});
  for (int i = 0; i < 6; ++i) CHECK(pool.try_submit([&] { release.wait(); }));
  CHECK(pool.try_submit([] {}) == Errc::full);
  release.set();
  pool.wait_idle();
  const int depth = pool.run([&] {
    return 1 +
           pool.run([&] { return 1 + pool.run([&] { return 1 + pool.run([] { return 1; }); }); });
  });
  CHECK(depth == 4);
  CHECK(balanced(pool.stats()));
}

FIBER_TEST_CASE("an unused pool with a load factor has no fiber after its idle timeout") {
  FiberPool pool({.capacity = 4,
                  .grow = GrowPolicy::load_factor({.up = 2, .down = 1, .interval = 1ms}),
                  .queue_capacity = 40,
                  .idle_timeout = 1ms});
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 40; ++i) CHECK(pool.submit([] { this_fiber::yield(); }));
    wait_until_true([&] {
      this_fiber::sleep_for(1ms);
      const RuntimeStats stats = runtime.stats();
      return pool.stats().live == 0 && stats.live == 1;
    });
  }
  CHECK(pool.stats().completed == 120);
}

FIBER_TEST_CASE("a pool with a load factor runs all tasks while it is resized, paused and closed") {
  const int rounds = 200 / static_cast<int>(kSlowdown);
  std::atomic<std::uint64_t> ran{0};
  std::uint64_t accepted = 0;
  FiberPool pool({.capacity = 6,
                  .grow = GrowPolicy::load_factor(
                      {.up = 2, .down = 1, .step = 2, .interval = std::chrono::microseconds(20)}),
                  .queue_capacity = 50,
                  .idle_timeout = std::chrono::microseconds(50)});
  for (int i = 0; i < rounds; ++i) {
    for (int n = 0; n < 10; ++n) {
      accepted += pool.submit([&] {
        this_fiber::yield();
        ran.fetch_add(1);
      })
                      ? 1
                      : 0;
    }
    const auto capacity = static_cast<std::size_t>(1 + i % 6);
    pool.resize(capacity);
    if (i % 3 == 0) pool.pause();
    if (i % 7 == 0) {
      pool.close(Close::drain);
      if (i % 2 == 0) pool.join();
      pool.reopen();
    }
    pool.resume();
    if (i % 4 == 0) {
      pool.wait_idle();
      CHECK(pool.stats().live <= capacity);
    }
  }
  pool.close(Close::drain);
  pool.join();
  CHECK(ran.load() == accepted);
  CHECK(accepted == 10 * static_cast<std::uint64_t>(rounds));
  CHECK(pool.stats().live == 0);
}

TEST_SUITE_END();

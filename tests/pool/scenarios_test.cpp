// Tests that weft avoids mistakes, and keeps promises, of other pools that no other suite covers:
// see README.md.
#include <atomic>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <vector>
#include <weft/go.hpp>
#include <weft/result_group.hpp>
#include <weft/wait_group.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using Gate = weft::test::Flag;

TEST_SUITE_BEGIN("pool/scenarios");

FIBER_TEST_CASE(
    "a pool of capacity 1 continues when its tasks throw while submitters wait for room") {
  std::atomic<int> reported{0};
  Gate release;
  FiberPool pool({.capacity = 1, .queue_capacity = 1, .on_exception = [&](std::exception_ptr) {
                    ++reported;
                  }});
  CHECK(pool.submit([&] {
    release.wait();
    throw std::runtime_error("the only worker's");
  }));
  WaitGroup submitters;
  for (int i = 0; i < 8; ++i) {
    submitters.go([&] { CHECK(pool.submit([] { throw std::runtime_error("another"); })); });
  }
  wait_until_true([&] { return pool.stats().blocked == 7; });
  release.set();
  submitters.wait();
  pool.wait_idle();
  CHECK(reported == 9);
  CHECK(pool.stats().started == 1);
}

FIBER_TEST_CASE("a wait_idle() that has timed out does not keep any worker blocked") {
  Gate release;
  std::atomic<int> ran{0};
  FiberPool pool({.capacity = 3, .queue_capacity = 20});
  for (int i = 0; i < 20; ++i) {
    CHECK(pool.submit([&] {
      release.wait();
      ++ran;
    }));
  }
  for (int i = 0; i < 3; ++i) CHECK_FALSE(pool.wait_idle_until(100us));
  release.set();
  CHECK(pool.wait_idle_until(1h));
  CHECK(ran == 20);
  CHECK(pool.submit([&] { ++ran; }));
  pool.wait_idle();
  CHECK(ran == 21);
}

FIBER_TEST_CASE("close(discard) ends run() calls whose tasks have not started") {
  Gate release;
  FiberPool pool({.capacity = 1, .queue_capacity = 5});
  CHECK(pool.submit([&] { release.wait(); }));
  std::vector<JoinHandle<std::error_code>> callers;
  for (int i = 0; i < 3; ++i) {
    callers.push_back(spawn([&] {
      try {
        pool.run([] { FAIL_CHECK("dropped"); });
      } catch (const std::system_error& error) {
        return error.code();
      }
      return std::error_code();
    }));
  }
  wait_until_true([&] { return pool.stats().busy == 1 && pool.stats().queued == 3; });
  pool.close(Close::discard);
  for (auto& caller : callers) CHECK(caller.join() == std::errc::operation_canceled);
  release.set();
  pool.join();
}

FIBER_TEST_CASE("a long queue starts at most as many workers as the capacity allows") {
  Gate release;
  FiberPool pool({.capacity = 10, .queue_capacity = kUnlimited});
  for (int i = 0; i < 1000; ++i) CHECK(pool.submit([&] { release.wait(); }));
  wait_until_true([&] { return pool.stats().busy == 10; });
  CHECK(pool.stats().live == 10);
  CHECK(pool.stats().started == 10);
  CHECK(pool.available_hint() == 0);
  release.set();
  pool.wait_idle();
  CHECK(pool.stats().completed == 1000);
  CHECK(pool.stats().started == 10);
}

FIBER_TEST_CASE("a reopened pool reuses one worker for tasks that run one after another") {
  FiberPool pool({.capacity = 4, .idle_timeout = kNever});
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 20; ++i) pool.run([] {});
    pool.close(Close::drain);
    CHECK(pool.submit([] {}) == Errc::closed);
    pool.join();
    CHECK(pool.stats().live == 0);
    pool.reopen();
  }
  CHECK(pool.stats().started == 3);
}

FIBER_TEST_CASE("the prestarted worker that became idle last takes the next task") {
  FiberPool pool({.capacity = 4, .min_workers = 4, .prestart = true, .idle_timeout = kNever});
  // All four run at once, so that no worker starts its first task afterwards.
  Gate release;
  for (int i = 0; i < 4; ++i) CHECK(pool.submit([&] { release.wait(); }));
  wait_until_true([&] { return pool.stats().busy == 4; });
  release.set();
  wait_until_true([&] { return pool.stats().idle == 4; });
  const auto hottest = pool.run([] { return this_fiber::id(); });
  for (int i = 0; i < 20; ++i) CHECK(pool.run([] { return this_fiber::id(); }) == hottest);
  CHECK(pool.stats().started == 4);
}

FIBER_TEST_CASE(
    "join() waits for a closed pool's running tasks, and returns at once if no task is running") {
  Gate release;
  FiberPool pool({.capacity = 2, .queue_capacity = 5});
  for (int i = 0; i < 5; ++i) CHECK(pool.submit([&] { release.wait(); }));
  wait_until_true([&] { return pool.stats().busy == 2; });
  pool.close(Close::discard);
  pool.close(Close::discard);
  CHECK_FALSE(pool.join_until(100us));
  CHECK(pool.stats().cancelled == 3);
  release.set();
  CHECK(pool.join_until(1h));
  CHECK(pool.join_until(0s));
  CHECK(pool.stats().live == 0);
}

FIBER_TEST_CASE("a group may be cancelled after its join, and more than once") {
  FiberPool pool({.capacity = 2});
  ResultGroup<int> group(pool);
  for (int i = 0; i < 5; ++i) group.spawn([i] { return i; });
  CHECK(group.join() == std::vector<int>{0, 1, 2, 3, 4});
  group.cancel();
  group.cancel();
  group.spawn([](Context& context) { return context.is_over() ? 1 : 0; });
  CHECK(group.join() == std::vector<int>{1});
}

FIBER_TEST_CASE("try_submit() never parks when the pool is full, so a server can answer at once") {
  Gate release;
  std::atomic<int> served{0};
  int refused = 0;
  FiberPool pool({.capacity = 3});
  for (int i = 0; i < 10; ++i) {
    const this_fiber::NoSwitch never_parks;
    const std::error_code error = pool.try_submit([&] {
      release.wait();
      ++served;
    });
    if (error == Errc::full) ++refused;
  }
  CHECK(refused == 7);
  CHECK(pool.stats().rejected == 7);
  release.set();
  pool.wait_idle();
  CHECK(served == 3);
}

FIBER_TEST_CASE(
    "a hundred tasks run on five workers, at most five at once, and all tasks are counted") {
  Concurrency gauge;
  Gate release;
  FiberPool pool({.capacity = 5, .queue_capacity = 10});
  auto submitter = spawn([&] {
    for (int i = 0; i < 100; ++i) {
      CHECK(pool.submit([&] {
        const Concurrency::Stay stay(gauge);
        release.wait();
        this_fiber::yield();
      }));
    }
  });
  wait_until_true([&] { return pool.stats().blocked == 1 && gauge.most() == 5; });
  const PoolStats full = pool.stats();
  CHECK(full.busy == 5);
  CHECK(full.queued == 10);
  CHECK(full.completed == 0);
  release.set();
  submitter.join();
  pool.wait_idle();
  CHECK(pool.stats().completed == 100);
  CHECK(pool.stats().busy == 0);
  CHECK(gauge.most() == 5);
}

TEST_SUITE_END();

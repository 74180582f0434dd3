// Tests async(), run() and the handles of tasks.
#include <malloc.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>
#include <weft/go.hpp>
#include <weft/wait_group.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/parked.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

TEST_SUITE_BEGIN("pool/task");

FIBER_TEST_CASE("get() returns a task's result, whatever its type") {
  FiberPool pool({.capacity = 2});
  CHECK(pool.async([] { return 42; }).get() == 42);
  CHECK(pool.async([] { return std::string("text"); }).get() == "text");
  CHECK(*pool.async([] { return std::make_unique<int>(7); }).get() == 7);
  pool.async([] {}).get();
  int variable = 1;
  int& same = pool.async([&]() -> int& { return variable; }).get();
  CHECK(&same == &variable);
  CHECK(&pool.run([&]() -> int& { return variable; }) == &variable);
  CHECK(*pool.run([] { return std::make_unique<int>(8); }) == 8);
  pool.run([&] { variable = 2; });
  CHECK(variable == 2);
}

FIBER_TEST_CASE("the memory of a finished task is freed when the task's handle is destroyed") {
  constexpr int kTasks = 5'000;
  FiberPool pool({.capacity = 2});
  const auto bytes_after_tasks = [&] {
    for (int i = 0; i < kTasks; ++i) CHECK(pool.async([i] { return i; }).get() == i);
    return ::mallinfo2().uordblks;
  };
  const std::size_t before = bytes_after_tasks();
  CHECK(bytes_after_tasks() < before + kTasks * 16);
}

FIBER_TEST_CASE("get() throws a task's exception, and the worker continues") {
  std::atomic<int> reported{0};
  FiberPool pool({.capacity = 1, .idle_timeout = kNever, .on_exception = [&](std::exception_ptr) {
                    ++reported;
                  }});
  for (int i = 0; i < 20; ++i) {
    auto task = pool.async([]() -> int { throw std::runtime_error("the task's"); });
    CHECK_THROWS_WITH_AS(task.get(), "the task's", std::runtime_error);
    CHECK(!task.valid());
    CHECK_THROWS_AS(pool.run([] { throw 5; }), int);
  }
  const PoolStats stats = pool.stats();
  CHECK(stats.failed == 40);
  CHECK(stats.completed == 0);
  CHECK(stats.started == 1);
  CHECK(reported.load() == 0);
}

FIBER_TEST_CASE("a task handle reports whether it is valid and whether its task has ended") {
  Flag release;
  FiberPool pool({.capacity = 1});
  PoolTask<int> none;
  CHECK(!none.valid());
  auto task = pool.async([&] {
    release.wait();
    return 3;
  });
  CHECK(task.valid());
  CHECK(!task.ready());
  CHECK(!task.wait_until(1ms));
  CHECK(!task.wait_until(Deadline::past()));
  release.set();
  CHECK(task.wait_until(1h));
  CHECK(task.ready());
  auto moved = std::move(task);
  CHECK(!task.valid());
  CHECK(moved.get() == 3);
  CHECK(!moved.valid());
}

FIBER_TEST_CASE("a task runs even after its handle has been destroyed") {
  std::atomic<int> ran{0};
  FiberPool pool({.capacity = 2, .queue_capacity = 50});
  for (int i = 0; i < 50; ++i) (void)pool.async([&] { ran.fetch_add(1); });
  pool.wait_idle();
  CHECK(ran.load() == 50);
}

FIBER_TEST_CASE("a queued task never runs when it is cancelled, and all waits for the task end") {
  Flag begun, release;
  std::atomic<bool> ran{false};
  FiberPool pool({.capacity = 1, .queue_capacity = 5});
  auto running = pool.async([&] {
    begun.set();  // Its worker counts as busy slightly earlier, when a cancel would still come in
                  // time.
    release.wait();
    return 1;
  });
  begun.wait();
  auto held = std::make_shared<int>(0);
  auto queued = pool.async([&, held] { ran.store(true); });
  std::vector<JoinHandle<void>> waiters;
  for (int i = 0; i < 3; ++i) waiters.push_back(spawn([&] { queued.wait(); }));
  await_parked(3);
  CHECK(queued.cancel());
  CHECK(queued.cancel());
  CHECK(held.use_count() == 1);
  for (auto& waiter : waiters) waiter.join();
  CHECK(queued.ready());
  CHECK_THROWS_AS(queued.get(), std::system_error);
  CHECK(!running.cancel());
  release.set();
  CHECK(running.get() == 1);
  pool.wait_idle();
  CHECK(!ran.load());
  const PoolStats stats = pool.stats();
  CHECK(stats.cancelled == 1);
  CHECK(stats.completed == 1);
}

FIBER_TEST_CASE("a task is either cancelled or run when cancel() races with the task's start") {
  const int rounds = 2000 / static_cast<int>(kSlowdown);
  FiberPool pool({.capacity = 2, .queue_capacity = 10});
  std::uint64_t cancelled = 0, ran = 0;
  for (int i = 0; i < rounds; ++i) {
    std::atomic<bool> started{false};
    auto task = pool.async([&] { started.store(true); });
    if (i % 3 != 0) this_fiber::yield();
    const bool never_runs = task.cancel();
    task.wait();
    CHECK(started.load() != never_runs);
    ++(never_runs ? cancelled : ran);
  }
  pool.wait_idle();
  CHECK(pool.stats().cancelled == cancelled);
  CHECK(pool.stats().completed == ran);
}

FIBER_TEST_CASE("all waiters of one task continue when the task ends") {
  Flag release;
  FiberPool pool({.capacity = 1});
  auto task = pool.async([&] { release.wait(); });
  std::vector<JoinHandle<void>> waiters;
  for (int i = 0; i < 20; ++i) {
    waiters.push_back(spawn([&, i] {
      if (i % 2 == 0) {
        task.wait();
      } else {
        while (!task.wait_until(100us)) {
        }
      }
    }));
  }
  release.set();
  for (auto& waiter : waiters) waiter.join();
}

FIBER_TEST_CASE("a task handle may outlive its pool") {
  PoolTask<int> done, dropped;
  {
    Flag release;
    FiberPool pool({.capacity = 1, .queue_capacity = 5});
    done = pool.async([&] {
      release.wait();
      return 9;
    });
    dropped = pool.async([] { return 10; });
    wait_until_true([&] { return pool.stats().queued == 1; });
    pool.close(Close::discard);
    release.set();
  }
  CHECK(done.get() == 9);
  CHECK(dropped.valid());
  CHECK_THROWS_AS(dropped.get(), std::system_error);
}

FIBER_TEST_CASE("a refused async() or run() throws the error code that submit() would return") {
  Flag release;
  FiberPool pool({.capacity = 1, .on_full = OnFull::reject});
  const auto code_of = [](auto call) {
    try {
      call();
    } catch (const std::system_error& error) {
      return error.code();
    }
    return std::error_code();
  };
  auto running = pool.async([&] { release.wait(); });
  CHECK(code_of([&] { (void)pool.async([] {}); }) == Errc::full);
  CHECK(code_of([&] { pool.run([] {}); }) == Errc::full);
  release.set();
  running.wait();
  pool.close(Close::drain);
  CHECK(code_of([&] { (void)pool.async([] {}); }) == Errc::closed);
  CHECK(code_of([&] { pool.run([] {}); }) == Errc::closed);
}

FIBER_TEST_CASE("run() returns only after its task has ended") {
  WaitGroup callers;
  std::atomic<int> sum{0};
  FiberPool pool({.capacity = 3, .queue_capacity = 2});
  callers.add(20);
  for (int c = 0; c < 20; ++c) {
    go([&] {
      for (int i = 0; i < 50; ++i) {
        int local = 0;
        pool.run([&] {
          this_fiber::yield();
          local = i;
        });
        sum.fetch_add(local);
      }
      callers.done();
    });
  }
  callers.wait();
  CHECK(sum.load() == 20 * 50 * 49 / 2);
}

TEST_SUITE_END();

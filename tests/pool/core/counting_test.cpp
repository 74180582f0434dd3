// Tests waits for a number of tasks.
#include <atomic>
#include <stop_token>
#include <system_error>
#include <thread>
#include <vector>
#include <weft/go.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/parked.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

TEST_SUITE_BEGIN("pool/counting");

FIBER_TEST_CASE("wait_for_completed(n) returns when n tasks have ended, and not before") {
  std::vector<weft::test::Flag> go_on(3);
  FiberPool pool({.capacity = 3});
  CHECK(pool.wait_for_completed(0));
  for (auto& event : go_on) CHECK(pool.submit([&] { event.wait(); }));
  std::atomic<bool> told{false};
  auto waiter = spawn([&] {
    const bool reached = pool.wait_for_completed(3);
    told.store(true);
    return reached;
  });
  await_parked(1);
  for (std::size_t i = 0; i < 2; ++i) {
    go_on[i].set();
    wait_until_true([&] { return pool.stats().completed == i + 1; });
    CHECK(pool.wait_for_completed(i + 1));
    for (int n = 0; n < 5; ++n) this_fiber::yield();
    CHECK_FALSE(told.load());
  }
  CHECK_FALSE(pool.wait_for_completed(3, 0s));
  go_on[2].set();
  CHECK(waiter.join());
  CHECK(pool.wait_for_completed(3, 0s));
  CHECK(pool.stats().completed == 3);
}

// No task ends in between, which would also wake the waiter.
FIBER_TEST_CASE("wait_for_completed(n) does not wait for the task after the n-th task") {
  weft::test::Flag begin;
  weft::test::Flag told;
  FiberPool pool({.capacity = 1, .queue_capacity = 8});
  CHECK(pool.submit([&] { begin.wait(); }));
  for (int i = 0; i < 2; ++i) CHECK(pool.submit([] {}));
  CHECK(pool.submit([&] { told.wait(); }));
  auto waiter = spawn([&] {
    const bool reached = pool.wait_for_completed(3);
    told.set();
    return reached;
  });
  await_parked(1);
  begin.set();
  CHECK(waiter.join());
}

FIBER_TEST_CASE(
    "concurrent calls of wait_for_completed() each return when their own number is reached") {
  constexpr std::uint64_t kTasks = 60;
  FiberPool pool({.capacity = 4, .queue_capacity = kUnlimited});
  std::vector<JoinHandle<bool>> waiters;
  for (std::uint64_t i = 0; i < kTasks; ++i) {
    // Uses each number once, in neither ascending nor descending order.
    waiters.push_back(spawn([&pool, number = i * 7 % kTasks + 1] {
      return pool.wait_for_completed(number) && pool.stats().completed >= number;
    }));
  }
  await_parked(kTasks);
  for (std::uint64_t i = 0; i < kTasks; ++i) {
    CHECK(pool.submit([i] {
      if (i % 3 == 0) this_fiber::yield();
    }));
  }
  for (auto& waiter : waiters) CHECK(waiter.join());
}

FIBER_TEST_CASE("a deadline or a stop request ends wait_for_completed()") {
  weft::test::Flag release;
  FiberPool pool({.capacity = 1});
  CHECK(pool.submit([&] { release.wait(); }));
  CHECK_FALSE(pool.wait_for_completed(1, 1ms));
  std::stop_source stop;
  auto stopped = spawn([&] { return pool.wait_for_completed(1, stop.get_token()); });
  auto patient = spawn([&] { return pool.wait_for_completed(1); });
  await_parked(2);
  stop.request_stop();
  CHECK_FALSE(stopped.join());
  CHECK_FALSE(pool.wait_for_completed(1, stop.get_token()));
  release.set();
  CHECK(patient.join());
  CHECK(pool.wait_for_completed(1, stop.get_token()));
}

FIBER_TEST_CASE(
    "wait_for_completed() counts tasks that throw and tasks that run in their submitter") {
  weft::test::Flag release;
  FiberPool pool(
      {.capacity = 1, .on_full = OnFull::caller_runs, .on_exception = [](std::exception_ptr) {}});
  auto waiter = spawn([&] { return pool.wait_for_completed(2); });
  await_parked(1);
  CHECK(pool.submit([&] {
    release.wait();
    throw 1;
  }));
  CHECK(pool.submit([] {}));
  CHECK(pool.stats().completed == 1);
  release.set();
  CHECK(waiter.join());
  CHECK(pool.stats().failed == 1);
}

FIBER_TEST_CASE("wait_for_completed() does not count dropped tasks and ends when the pool ends") {
  weft::test::Flag release;
  FiberPool pool({.capacity = 1, .queue_capacity = 10});
  for (int i = 0; i < 5; ++i) CHECK(pool.submit([&] { release.wait(); }));
  wait_until_true([&] { return pool.stats().busy == 1; });
  std::atomic<bool> told{false};
  auto all = spawn([&] {
    const bool reached = pool.wait_for_completed(5);
    told.store(true);
    return reached;
  });
  auto first = spawn([&] { return pool.wait_for_completed(1); });
  await_parked(2);
  pool.close(Close::discard);
  for (int n = 0; n < 5; ++n) this_fiber::yield();
  CHECK_FALSE(told.load());
  release.set();
  pool.join();
  CHECK_FALSE(all.join());
  CHECK(first.join());
  CHECK_FALSE(pool.wait_for_completed(2));
  CHECK(pool.wait_for_completed(1));
}

FIBER_TEST_CASE("a reopened pool continues its count of completed tasks") {
  FiberPool pool({.capacity = 2});
  pool.run([] {});
  pool.close(Close::drain);
  pool.join();
  pool.reopen();
  auto waiter = spawn([&] { return pool.wait_for_completed(2); });
  await_parked(1);
  pool.run([] {});
  CHECK(waiter.join());
}

FIBER_TEST_CASE("wait_for_completed() throws an error when called in a task of the same pool") {
  FiberPool pool({.capacity = 2}), other({.capacity = 1});
  pool.run([&] {
    CHECK_THROWS_AS((void)pool.wait_for_completed(1), std::system_error);
    other.run([] {});
    CHECK(other.wait_for_completed(1));
  });
}

THREAD_TEST_CASE("plain threads can call wait_for_completed()") {
  FiberPool pool({.capacity = 2, .queue_capacity = kUnlimited});
  std::atomic<int> reached{0};
  std::vector<std::thread> threads;
  for (const std::uint64_t number : {100u, 20u, 60u}) {
    threads.emplace_back([&, number] { reached += pool.wait_for_completed(number) ? 1 : 0; });
  }
  for (int i = 0; i < 100; ++i) CHECK(pool.submit([] {}));
  for (auto& thread : threads) thread.join();
  CHECK(reached.load() == 3);
}

FIBER_TEST_CASE(
    "wait_for_completed() returns after the given number of tasks has ended even while other "
    "waiters time out") {
  const int rounds = 300 / static_cast<int>(kSlowdown);
  FiberPool pool({.capacity = 3, .queue_capacity = 5});
  auto submitter = spawn([&] {
    for (int i = 0; i < 4 * rounds; ++i) CHECK(pool.submit([] {}));
  });
  auto fickle = spawn([&] {
    for (int i = 0; i < rounds; ++i) {
      (void)pool.wait_for_completed(pool.stats().completed + 2, std::chrono::microseconds(i));
    }
  });
  for (int i = 1; i <= rounds; ++i) {
    const auto number = static_cast<std::uint64_t>(4 * i);
    CHECK(pool.wait_for_completed(number));
    CHECK(pool.stats().completed >= number);
  }
  submitter.join();
  fickle.join();
}

TEST_SUITE_END();

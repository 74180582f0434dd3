#include <weft/mutex.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>
#include <weft/go.hpp>
#include <weft/semaphore.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"
#include "tests/sync/callers.hpp"

namespace {

using namespace std::chrono_literals;
using weft::Mutex;
using weft::test::await_parked;
using weft::test::kSlowdown;
using weft::test::parked_fibers;
using weft::test::run_mixed;

TEST_SUITE_BEGIN("sync/mutex");

THREAD_TEST_CASE("a mutex provides mutual exclusion among fibers and plain threads") {
  Mutex mutex;
  long counter = 0;  // Not atomic: lost updates and sanitizers reveal races.
  int inside = 0;
  const int rounds = 2'000 / static_cast<int>(kSlowdown);
  run_mixed(6, 3, [&](int number) {
    weft::test::Random random(static_cast<std::uint64_t>(number));
    for (int i = 0; i < rounds; ++i) {
      const std::lock_guard lock(mutex);
      if (++inside != 1) FAIL_CHECK("two are inside");
      ++counter;
      if (random.one_in(20)) weft::this_fiber::yield();
      --inside;
    }
  });
  CHECK(counter == 9L * rounds);
}

FIBER_TEST_CASE("a fiber may hold a mutex while it parks and unlock the mutex on another thread") {
  Mutex mutex;
  int inside = 0;
  std::vector<weft::JoinHandle<void>> fibers;
  for (int number = 0; number < 10; ++number) {
    fibers.push_back(weft::spawn([&] {
      for (int i = 0; i < 10; ++i) {
        const std::lock_guard lock(mutex);
        if (++inside != 1) FAIL_CHECK("two are inside");
        weft::this_fiber::sleep_for(1us);
        --inside;
      }
    }));
  }
}

FIBER_TEST_CASE("try_lock() locks a free mutex and fails on a locked mutex") {
  Mutex mutex;
  CHECK(mutex.try_lock());
  CHECK(!mutex.try_lock());
  CHECK(!weft::spawn([&] { return mutex.try_lock(); }).join());
  mutex.unlock();
  CHECK(weft::spawn([&] { return mutex.try_lock(); }).join());
  mutex.unlock();
}

THREAD_TEST_CASE(
    "a timed lock takes a free mutex, and otherwise gives up at its deadline, not before") {
  Mutex mutex;
  CHECK(mutex.try_lock_for(0ns));
  const auto attempt = [&] {
    for (const auto span : {0us, 1us, 300us}) {
      const auto deadline = weft::Deadline::after(span);
      CHECK(!mutex.try_lock_until(deadline));
      CHECK(deadline.passed());
    }
  };
  attempt();
  weft::spawn(attempt).join();
  mutex.unlock();
  weft::spawn([&] {
    CHECK(mutex.try_lock_for(1h));
    mutex.unlock();
  }).join();
  CHECK(mutex.try_lock_until(std::chrono::steady_clock::now() + 1h));
  mutex.unlock();
}

FIBER_TEST_CASE("an unlock wakes a caller of try_lock_for() before the caller's deadline") {
  Mutex mutex;
  mutex.lock();
  auto waiting = weft::spawn([&] {
    const bool locked = mutex.try_lock_for(1h);
    if (locked) mutex.unlock();
    return locked;
  });
  await_parked(runtime, "mutex", 1);
  mutex.unlock();
  CHECK(waiting.join());
}

THREAD_TEST_CASE("timed locks with tiny timeouts lose no unlock and never lock a mutex twice") {
  Mutex mutex;
  long counter = 0;
  std::atomic<long> successes{0};
  const int rounds = 2'000 / static_cast<int>(kSlowdown);
  run_mixed(5, 2, [&](int number) {
    weft::test::Random random(static_cast<std::uint64_t>(number));
    for (int i = 0; i < rounds; ++i) {
      const bool timed = !random.one_in(4);
      const std::chrono::microseconds span(random.below(3));
      if (timed) {
        if (!mutex.try_lock_for(span)) continue;
      } else {
        mutex.lock();
      }
      ++counter;
      successes.fetch_add(1);
      if (random.one_in(8)) weft::this_fiber::yield();
      mutex.unlock();
    }
  });
  CHECK(counter == successes.load());
  CHECK(mutex.try_lock());
  mutex.unlock();
}

// A caller that locks the mutex repeatedly may overtake a waiter once, but not forever.
FIBER_TEST_CASE("a waiter that another caller has overtaken is the next to get the mutex") {
  for (int round = 0; round < 20; ++round) {
    Mutex mutex;
    std::atomic<bool> served{false};
    mutex.lock();
    auto waiter = weft::spawn([&] {
      const std::lock_guard lock(mutex);
      served.store(true);
    });
    await_parked(runtime, "mutex", 1);
    mutex.unlock();
    mutex.lock();  // Overtakes the waiter, unless the waiter is faster.
    while (!served.load() && parked_fibers(runtime, "mutex") == 0) weft::this_fiber::yield();
    mutex.unlock();
    mutex.lock();
    CHECK(served.load());
    mutex.unlock();
    waiter.join();
  }
}

FIBER_TEST_CASE("a caller gets a mutex even though other fibers lock the mutex continuously") {
  Mutex mutex;
  std::atomic<bool> stop{false};
  std::vector<weft::JoinHandle<void>> greedy;
  for (int i = 0; i < 3; ++i) {
    greedy.push_back(weft::spawn([&] {
      while (!stop.load()) {
        mutex.lock();
        weft::this_fiber::yield();
        mutex.unlock();
      }
    }));
  }
  for (int i = 0; i < 50; ++i) {
    const std::lock_guard lock(mutex);
    weft::this_fiber::yield();
  }
  stop.store(true);
}

FIBER_TEST_CASE_WITH("waiters of a mutex are served in FIFO order", {.workers = {1}}) {
  Mutex mutex;
  std::vector<int> order;
  std::vector<weft::JoinHandle<void>> fibers;
  mutex.lock();
  for (int i = 0; i < 10; ++i) {
    fibers.push_back(weft::spawn([&, i] {
      const std::lock_guard lock(mutex);
      order.push_back(i);
    }));
    weft::this_fiber::yield();
  }
  mutex.unlock();
  for (auto& fiber : fibers) fiber.join();
  CHECK(order == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
}

THREAD_TEST_CASE("std::lock takes two mutexes in either order without a deadlock") {
  Mutex first;
  Mutex second;
  long left = 0;
  long right = 0;
  const int rounds = 1'000 / static_cast<int>(kSlowdown);
  run_mixed(4, 2, [&](int number) {
    for (int i = 0; i < rounds; ++i) {
      if (number % 2 == 0) {
        const std::scoped_lock lock(first, second);
        ++left;
        ++right;
      } else {
        const std::scoped_lock lock(second, first);
        ++left;
        ++right;
      }
    }
  });
  CHECK(left == 6L * rounds);
  CHECK(right == 6L * rounds);
}

FIBER_TEST_CASE(
    "a mutex supports std::unique_lock with a blocking, a non-blocking and a timed lock") {
  Mutex mutex;
  std::unique_lock lock(mutex);
  CHECK(lock.owns_lock());
  const std::unique_lock second(mutex, std::try_to_lock);
  CHECK(!second.owns_lock());
  lock.unlock();
  const std::unique_lock timed(mutex, 1ms);
  CHECK(timed.owns_lock());
}

TEST_SUITE_END();

}  // namespace

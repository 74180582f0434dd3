#include <weft/detail/spin_lock.hpp>

#include <doctest/doctest.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/support/fiber_test.hpp"
#include "tests/support/skip.hpp"

namespace {

using weft::detail::SpinLock;

bool pin_this_thread() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  return pthread_setaffinity_np(pthread_self(), sizeof one, &one) == 0;
}

double processor_seconds() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

TEST_SUITE_BEGIN("base/spin_lock");

// The waiter has priority over the holder, and they share one processor. While the waiter spins or
// yields, the holder cannot run.
TEST_CASE("a real-time thread that waits for a spin lock lets the lock's holder run") {
  const weft::test::TestGuard guard("real-time priority");
  SpinLock lock;
  std::atomic<int> stage{0};
  double used = 0;
  std::chrono::duration<double> waited{};
  bool is_real_time = false;
  std::thread both([&] {
    if (!pin_this_thread()) return;
    std::thread waiter([&] {
      sched_param priority{};
      priority.sched_priority = 1;
      is_real_time = pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority) == 0;
      stage = 1;
      stage.notify_one();
      stage.wait(1);
      const auto start = std::chrono::steady_clock::now();
      lock.lock();
      used = processor_seconds();
      waited = std::chrono::steady_clock::now() - start;
      lock.unlock();
    });
    stage.wait(0);
    lock.lock();
    stage = 2;
    stage.notify_one();  // The waiter runs from here on.
    const double start = processor_seconds();
    while (processor_seconds() - start < 0.005) continue;
    lock.unlock();
    waiter.join();
  });
  both.join();
  if (!is_real_time) {
    return weft::test::skip("the system grants no real-time priority");
  }
  // The longer other threads keep the holder from its processor, the more often the waiter checks
  // the lock.
  CHECK(used < std::max(0.2, waited.count() / 2));
}

TEST_SUITE_END();

}  // namespace

#include <weft/pacer.hpp>

#include <atomic>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>
#include <weft/context.hpp>
#include <weft/go.hpp>
#include <weft/mutex.hpp>
#include <weft/pool.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/sim_test.hpp"
#include "tests/sync/callers.hpp"

using namespace std::chrono_literals;
using weft::Context;
using weft::Deadline;
using weft::FiberPool;
using weft::Pacer;
using weft::WaitGroup;
using weft::test::await_parked;

namespace {
using Clock = Deadline::Clock;
}

TEST_SUITE_BEGIN("sync/pacer");

SIM_TEST_CASE(
    "a pacer's first caller starts immediately, and later callers start one spacing apart") {
  const auto begin = world.now();
  Pacer pacer(2min);
  CHECK(pacer.next_until(Deadline::past()));
  CHECK_FALSE(Pacer(1h).is_paused_hint());
  std::vector<std::chrono::nanoseconds> starts;
  weft::Mutex mutex;
  WaitGroup callers;
  for (int i = 0; i < 5; ++i) {
    callers.go([&] {
      pacer.next();
      const std::lock_guard guard(mutex);
      starts.push_back(world.now());
    });
  }
  callers.wait();
  for (std::size_t i = 0; i < starts.size(); ++i) {
    CHECK(starts[i] - begin >= static_cast<int>(i + 1) * 2min);
    CHECK(starts[i] - begin < static_cast<int>(i + 1) * 2min + 1s);
  }
}

SIM_TEST_CASE(
    "when a wait at a pacer is stopped or times out, the next caller gets the unused start time") {
  Pacer pacer(1h);
  pacer.next();
  CHECK_FALSE(pacer.next_until(Deadline::past()));
  CHECK_FALSE(pacer.next_for(59min));
  Context context;
  std::vector<weft::JoinHandle<bool>> waiting;
  for (int i = 0; i < 3; ++i) {
    waiting.push_back(weft::spawn([&] { return pacer.next_until(context); }));
  }
  weft::sim::settle();
  context.cancel();
  for (auto& caller : waiting) CHECK_FALSE(caller.join());
  CHECK_FALSE(pacer.next_until(context));
}

SIM_TEST_CASE("a paused pacer admits no caller, not even a caller whose sleep has ended") {
  Pacer pacer(1min);
  pacer.pause();
  CHECK(pacer.is_paused_hint());
  CHECK_FALSE(pacer.next_until(Deadline::past()));
  std::atomic<int> through{0};
  auto waiting = weft::spawn([&] {
    pacer.next();
    ++through;
  });
  weft::sim::settle();
  CHECK_FALSE(pacer.next_for(24h));
  CHECK(through == 0);
  pacer.resume();
  CHECK_FALSE(pacer.is_paused_hint());
  waiting.join();
  CHECK(through == 1);
  // Pauses while a caller sleeps: the caller wakes, and continues to wait.
  Pacer slow(5min);
  slow.next();
  auto sleeper = weft::spawn([&] { return slow.next_for(20min); });
  weft::sim::settle();
  slow.pause();
  CHECK_FALSE(sleeper.join());
  slow.resume();
  slow.next();
}

SIM_TEST_CASE("a shared pacer starts tasks of several pools one after the other") {
  const auto begin = world.now();
  Pacer pacer(1h);
  FiberPool first({.capacity = 4}), second({.capacity = 4});
  std::vector<weft::PoolTask<std::string>> tasks;
  for (int i = 0; i < 3; ++i) {
    for (FiberPool* pool : {&first, &second}) {
      tasks.push_back(pool->async(pacer.pace([i] { return std::to_string(i); })));
    }
  }
  for (std::size_t i = 0; i < tasks.size(); ++i) CHECK(tasks[i].get() == std::to_string(i / 2));
  CHECK(world.now() - begin >= 5h);
  CHECK(world.now() - begin < 5h + 1s);
}

FIBER_TEST_CASE("a pacer refuses a spacing that is not above 0") {
  CHECK_THROWS_AS(Pacer(0ms), std::invalid_argument);
  CHECK_THROWS_AS(Pacer(-1ms), std::invalid_argument);
}

THREAD_TEST_CASE("a pacer blocks a plain thread until the thread's start time") {
  const auto begin = Clock::now();
  Pacer pacer(2ms);
  for (int i = 0; i < 3; ++i) pacer.next();
  CHECK(Clock::now() - begin >= 4ms);
  Pacer slow(1h);
  slow.next();
  CHECK_FALSE(slow.next_until(Deadline::past()));
}

THREAD_TEST_CASE(
    "a deadline or a stop request ends a plain thread's wait for a start time or for an earlier "
    "caller") {
  std::stop_source source;
  const std::stop_token token = source.get_token();
  weft::go([source]() mutable { (void)source.request_stop(); });
  // The moment of the turn has not come.
  Pacer slow(1h);
  slow.next();
  CHECK_FALSE(slow.next_for(1ms));
  CHECK_FALSE(slow.next_until(token));
  // Another caller comes first.
  Context context;
  auto first = weft::spawn([&] { return slow.next_until(context); });
  await_parked(runtime, "sleep", 1);
  CHECK_FALSE(slow.next_for(1ms));
  CHECK_FALSE(slow.next_until(token));
  context.cancel();
  CHECK_FALSE(first.join());
  // The pacer is paused; a caller that gave up has not consumed the turn.
  Pacer paused(1h);
  paused.pause();
  CHECK_FALSE(paused.next_for(1ms));
  CHECK_FALSE(paused.next_until(token));
  paused.resume();
  CHECK(paused.next_until(token));
}

TEST_SUITE_END();

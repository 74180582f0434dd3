// Tests the numbers that a pool reports periodically.
#include <atomic>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <vector>
#include <weft/event.hpp>
#include <weft/go.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/sim_test.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

namespace {

// The numbers that on_tick got.
class Told {
 public:
  void add(const PoolStats& stats) {
    const std::scoped_lock hold(mutex_);
    last_ = stats;
    ++calls_;
  }
  [[nodiscard]] int calls() const {
    const std::scoped_lock hold(mutex_);
    return calls_;
  }
  [[nodiscard]] PoolStats last() const {
    const std::scoped_lock hold(mutex_);
    return last_;
  }
  [[nodiscard]] Tick every(std::chrono::nanoseconds period) {
    return {.period = period, .call = [this](const PoolStats& stats) { add(stats); }};
  }

 private:
  mutable std::mutex mutex_;  // Never held over a switch.
  PoolStats last_;
  int calls_ = 0;
};

}  // namespace

TEST_SUITE_BEGIN("pool/ticks");

SIM_TEST_CASE(
    "on_tick receives statistics while the pool is open, and once more before join() returns") {
  Told told;
  weft::Event release;
  FiberPool pool({.capacity = 2, .queue_capacity = 20, .on_tick = told.every(1h)});
  for (int i = 0; i < 10; ++i) CHECK(pool.submit([&] { release.wait(); }));
  world.run_for(59min);
  CHECK(told.calls() == 0);
  world.run_for(2min);
  CHECK(told.calls() == 1);
  CHECK(told.last().busy == 2);
  CHECK(told.last().queued == 8);
  CHECK(balanced(told.last()));
  world.run_for(24h);
  CHECK(told.calls() == 25);
  release.set();
  pool.close(Close::drain);
  pool.join();
  CHECK(told.last().completed == 10);
  CHECK(told.last().live == 0);
  CHECK(told.last().retired == 2);
}

FIBER_TEST_CASE("a long period delays neither the end of a pool nor the last call to on_tick") {
  Told told;
  {
    FiberPool pool({.capacity = 2, .on_tick = told.every(1h)});
    for (int i = 0; i < 5; ++i) CHECK(pool.submit([] {}));
    pool.wait_idle();
    CHECK(told.calls() == 0);
  }
  CHECK(told.calls() == 1);
  CHECK(told.last().completed == 5);
}

FIBER_TEST_CASE(
    "on_tick without a period is called only once, at the pool's end, even if the pool ran no "
    "task") {
  Told told;
  { const FiberPool pool({.capacity = 2, .on_tick = told.every(kNever)}); }
  CHECK(told.calls() == 1);
  CHECK(told.last().submitted == 0);
}

SIM_TEST_CASE("on_tick receives statistics while a closed pool drains") {
  Told told;
  weft::Event release;
  FiberPool pool({.capacity = 1, .on_tick = told.every(1h)});
  CHECK(pool.submit([&] { release.wait(); }));
  sim::settle();
  pool.close(Close::drain);
  CHECK_FALSE(pool.join_until(150min));
  CHECK(told.calls() == 2);
  CHECK(told.last().busy == 1);
  release.set();
  pool.join();
  CHECK(told.last().completed == 1);
}

FIBER_TEST_CASE("the last call to on_tick follows the end of a task that runs inside submit()") {
  Told told;
  weft::test::Flag running, release;
  FiberPool pool({.capacity = 1, .on_full = OnFull::caller_runs, .on_tick = told.every(kNever)});
  CHECK(pool.submit([&] { release.wait(); }));
  auto caller = spawn([&] {
    CHECK(pool.submit([&] {
      running.set();
      while (!pool.is_closed_hint()) this_fiber::yield();
    }));
  });
  running.wait();
  release.set();
  pool.close(Close::drain);
  pool.join();
  CHECK(told.calls() == 1);
  CHECK(told.last().completed == 2);
  caller.join();
}

FIBER_TEST_CASE("an exception that on_tick throws is logged, and on_tick is called again") {
  std::atomic<int> calls{0}, lines{0};
  FiberPool pool({.capacity = 1,
                  .logger =
                      [&](std::string_view line) {
                        if (line == "weft: pool '': on_tick threw: not a std::exception") ++lines;
                      },
                  .on_tick = {.period = 1ms, .call = [&](const PoolStats&) {
                                calls.fetch_add(1);
                                throw 1;
                              }}});
  wait_until_true([&] { return calls.load() >= 3; });
  pool.close(Close::drain);
  pool.join();
  CHECK(lines.load() == calls.load());
}

FIBER_TEST_CASE("on_tick may use and close its pool, but may not join the pool") {
  std::atomic<int> refused{0}, ran{0};
  FiberPool* same = nullptr;
  weft::test::Flag made;
  FiberPool pool({.capacity = 1, .on_tick = {.period = 1ms, .call = [&](const PoolStats&) {
                                               made.wait();
                                               if (same->is_closed_hint()) return;
                                               same->run([&] { ran.fetch_add(1); });
                                               same->wait_idle();
                                               try {
                                                 same->join();
                                               } catch (const std::system_error&) {
                                                 refused.fetch_add(1);
                                               }
                                               same->close(Close::drain);
                                             }}});
  same = &pool;
  made.set();
  pool.join();
  CHECK(ran.load() == 1);
  CHECK(refused.load() == 1);
}

FIBER_TEST_CASE("on_tick receives the statistics of a reopened pool") {
  Told told;
  FiberPool pool({.capacity = 2, .on_tick = told.every(1h)});
  for (int round = 1; round <= 3; ++round) {
    pool.run([] {});
    pool.close(Close::drain);
    pool.join();
    CHECK(told.calls() == round);
    CHECK(told.last().completed == static_cast<std::uint64_t>(round));
    pool.reopen();
  }
}

FIBER_TEST_CASE("a pool with on_tick can be opened and closed at any time") {
  const int rounds = 500 / static_cast<int>(kSlowdown);
  Told told;
  FiberPool pool({.capacity = 2, .queue_capacity = 10, .on_tick = told.every(1us)});
  std::uint64_t accepted = 0;
  for (int i = 0; i < rounds; ++i) {
    for (int n = 0; n < 3; ++n) accepted += pool.submit([] { this_fiber::yield(); }) ? 1 : 0;
    pool.close(Close::drain);
    for (int n = 0; n < i % 5; ++n) this_fiber::yield();
    pool.reopen();
  }
  pool.close(Close::drain);
  pool.join();
  CHECK(accepted == 3 * static_cast<std::uint64_t>(rounds));
  CHECK(told.last().completed == accepted);
  CHECK(told.last().busy == 0);
}

FIBER_TEST_CASE("a stop request through PoolOptions::stop ends a pool with on_tick") {
  Told told;
  std::stop_source stop;
  FiberPool pool({.capacity = 1, .on_tick = told.every(1h), .stop = stop.get_token()});
  CHECK(pool.submit([](std::stop_token token) {
    while (!token.stop_requested()) this_fiber::yield();
  }));
  stop.request_stop();
  pool.join();
  CHECK(told.calls() == 1);
}

TEST_SUITE_END();

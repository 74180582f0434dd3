// Tests that no task starts while a pool is paused.
#include <atomic>
#include <memory>
#include <stop_token>
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

TEST_SUITE_BEGIN("pool/pause");

FIBER_TEST_CASE("a paused pool starts no task until resume(), and then starts all tasks in order") {
  std::vector<int> ran;
  FiberPool pool({.capacity = 1, .queue_capacity = 50});
  CHECK_FALSE(pool.is_paused_hint());
  pool.pause();
  pool.pause();
  CHECK(pool.is_paused_hint());
  CHECK(pool.wait_paused());
  for (int i = 0; i < 50; ++i) CHECK(pool.submit([&ran, i] { ran.push_back(i); }));
  for (int i = 0; i < 20; ++i) this_fiber::yield();
  CHECK_FALSE(pool.wait_idle_until(1ms));
  CHECK(ran.empty());
  CHECK(pool.stats().queued == 50);
  pool.resume();
  pool.resume();
  pool.wait_idle();
  CHECK(ran.size() == 50);
  for (int i = 0; i < 50; ++i) CHECK(ran[static_cast<std::size_t>(i)] == i);
}

FIBER_TEST_CASE(
    "running tasks continue during a pause, and wait_paused() waits for the running tasks") {
  weft::test::Flag release;
  std::atomic<int> ended{0};
  FiberPool pool({.capacity = 3, .queue_capacity = 3});
  for (int i = 0; i < 3; ++i) {
    CHECK(pool.submit([&] {
      release.wait();
      ended.fetch_add(1);
    }));
  }
  wait_until_true([&] { return pool.stats().busy == 3; });
  CHECK(pool.submit([&] { ended.fetch_add(100); }));
  pool.pause();
  CHECK_FALSE(pool.wait_paused_until(1ms));
  std::stop_source stop;
  auto stopped = spawn([&] { return pool.wait_paused_until(stop.get_token()); });
  auto waiter = spawn([&] { return pool.wait_paused(); });
  std::atomic<bool> in_thread{false};
  std::thread thread([&] { in_thread.store(pool.wait_paused()); });
  await_parked(2);
  stop.request_stop();
  CHECK_FALSE(stopped.join());
  CHECK_FALSE(pool.wait_paused_until(stop.get_token()));
  release.set();
  CHECK(waiter.join());
  thread.join();
  CHECK(in_thread.load());
  CHECK(ended.load() == 3);
  CHECK(pool.wait_paused_until(0s));
  pool.resume();
  pool.wait_idle();
  CHECK(ended.load() == 103);
}

FIBER_TEST_CASE("wait_paused() returns false when the pause is ended or no pause is active") {
  weft::test::Flag release;
  FiberPool pool({.capacity = 1});
  CHECK_FALSE(pool.wait_paused());
  CHECK(pool.submit([&] { release.wait(); }));
  wait_until_true([&] { return pool.stats().busy == 1; });
  for (const bool by_close : {false, true}) {
    pool.pause();
    auto waiter = spawn([&] { return pool.wait_paused(); });
    await_parked(1);
    if (by_close) {
      pool.close(Close::discard);
    } else {
      pool.resume();
    }
    CHECK_FALSE(waiter.join());
  }
  release.set();
}

// Uses one worker, so that the waiter is certainly parked.
FIBER_TEST_CASE_WITH(
    "wait_paused() returns when its pause ends even if another pause begins immediately",
    {.workers = {1}}) {
  weft::test::Flag release;
  FiberPool pool({.capacity = 1});
  CHECK(pool.submit([&] { release.wait(); }));
  wait_until_true([&] { return pool.stats().busy == 1; });
  pool.pause();
  auto waiter = spawn([&] { return pool.wait_paused_until(1h); });
  for (int i = 0; i < 5; ++i) this_fiber::yield();
  pool.resume();
  pool.pause();
  CHECK_FALSE(waiter.join());
  pool.resume();
  release.set();
}

FIBER_TEST_CASE("a task may pause its own pool, and gets an error from wait_paused()") {
  for (const std::size_t capacity : {1u, 4u}) {
    std::atomic<int> ran{0};
    FiberPool pool({.capacity = capacity, .queue_capacity = kUnlimited});
    pool.run([&] {
      pool.pause();
      for (int i = 0; i < 40; ++i) CHECK(pool.submit([&] { ran.fetch_add(1); }));
      CHECK_THROWS_AS(pool.wait_paused(), std::system_error);
      for (int i = 0; i < 10; ++i) this_fiber::yield();
      CHECK(ran.load() == 0);
    });
    CHECK(pool.wait_paused());
    CHECK(ran.load() == 0);
    auto resumer = spawn([&] { pool.resume(); });
    CHECK(pool.run([&] { return 3; }) == 3);
    resumer.join();
    pool.wait_idle();
    CHECK(ran.load() == 40);
  }
}

FIBER_TEST_CASE(
    "a paused pool accepts tasks while the queue has room, and then blocks submitters") {
  for (const std::size_t queue_capacity : {0u, 2u, 40u}) {
    std::atomic<int> ran{0};
    FiberPool pool({.capacity = 2, .queue_capacity = queue_capacity});
    pool.pause();
    const std::size_t room = 2 + queue_capacity;
    for (std::size_t i = 0; i < room; ++i) CHECK(pool.try_submit([&] { ran.fetch_add(1); }));
    CHECK(pool.try_submit([] {}) == Errc::full);
    CHECK(pool.submit_until(1ms, [] {}) == Errc::timed_out);
    auto blocked = spawn([&] { return pool.submit([&] { ran.fetch_add(1); }); });
    wait_until_true([&] { return pool.stats().blocked == 1; });
    CHECK(ran.load() == 0);
    pool.resume();
    CHECK(blocked.join());
    pool.wait_idle();
    CHECK(static_cast<std::size_t>(ran.load()) == room + 1);
  }
}

FIBER_TEST_CASE("a paused pool admits blocked submitters when running tasks end") {
  weft::test::Flag release;
  std::atomic<int> ran{0};
  FiberPool pool({.capacity = 40});
  for (int i = 0; i < 40; ++i) CHECK(pool.submit([&] { release.wait(); }));
  wait_until_true([&] { return pool.stats().busy == 40; });
  std::vector<JoinHandle<Accepted>> submitters;
  for (int i = 0; i < 45; ++i) {
    submitters.push_back(spawn([&] { return pool.submit([&] { ran.fetch_add(1); }); }));
  }
  wait_until_true([&] { return pool.stats().blocked == 45; });
  pool.pause();
  release.set();
  CHECK(pool.wait_paused());
  wait_until_true([&] { return pool.stats().blocked == 5 && pool.stats().queued == 40; });
  CHECK(ran.load() == 0);
  pool.resume();
  for (auto& submitter : submitters) CHECK(submitter.join());
  pool.wait_idle();
  CHECK(ran.load() == 45);
}

FIBER_TEST_CASE(
    "close(drain) runs a paused pool's queued tasks, but close(discard) and close(cancel) drop "
    "them") {
  for (const Close mode : {Close::drain, Close::discard, Close::cancel}) {
    std::atomic<int> ran{0};
    FiberPool pool({.capacity = 2, .queue_capacity = 100});
    pool.pause();
    for (int i = 0; i < 60; ++i) CHECK(pool.submit([&] { ran.fetch_add(1); }));
    pool.close(mode);
    CHECK_FALSE(pool.is_paused_hint());
    pool.pause();  // Has no effect on a closed pool, which must drain.
    CHECK_FALSE(pool.is_paused_hint());
    pool.join();
    CHECK(ran.load() == (mode == Close::drain ? 60 : 0));
    pool.reopen();
    CHECK(pool.run([] { return 1; }) == 1);
  }
}

FIBER_TEST_CASE("the destructor of a paused pool runs the queued tasks") {
  std::atomic<int> ran{0};
  {
    FiberPool pool({.capacity = 2, .queue_capacity = 10});
    pool.pause();
    for (int i = 0; i < 10; ++i) CHECK(pool.submit([&] { ran.fetch_add(1); }));
  }
  CHECK(ran.load() == 10);
}

FIBER_TEST_CASE("a paused pool may be resized, and its idle workers retire") {
  Concurrency gauge;
  FiberPool pool({.capacity = 8, .queue_capacity = 100, .idle_timeout = 1ms});
  pool.pause();
  for (int i = 0; i < 50; ++i) {
    CHECK(pool.submit([&] {
      const Concurrency::Stay stay(gauge);
      this_fiber::yield();
    }));
  }
  pool.resize(1);
  wait_until_true([&] { return pool.stats().live == 1; });
  pool.resize(3);
  CHECK(gauge.most() == 0);
  pool.resume();
  pool.wait_idle();
  CHECK(gauge.most() <= 3);
  CHECK(pool.stats().completed == 50);
  pool.pause();
  wait_until_true([&] { return pool.stats().live == 0; });
  CHECK(pool.submit([] {}));
  pool.resume();
  pool.wait_idle();
  CHECK(pool.stats().completed == 51);
}

FIBER_TEST_CASE("a paused pool with caller_runs does not run a task in the submitter") {
  std::atomic<int> ran{0};
  FiberPool pool({.capacity = 1, .on_full = OnFull::caller_runs});
  pool.pause();
  CHECK(pool.submit([&] { ran.fetch_add(1); }));
  auto submitter = spawn([&] { return pool.submit([&] { ran.fetch_add(1); }); });
  wait_until_true([&] { return pool.stats().blocked == 1; });
  CHECK(ran.load() == 0);
  pool.resume();
  CHECK(submitter.join());
  pool.wait_idle();
  CHECK(ran.load() == 2);
}

FIBER_TEST_CASE(
    "a task that waits for its own paused pool delays wait_paused() and then continues") {
  weft::test::Flag release;
  FiberPool pool({.capacity = 2, .queue_capacity = 1});
  auto inner = pool.async([&] { release.wait(); });
  wait_until_true([&] { return pool.stats().busy == 1; });
  auto outer = pool.async([&] { inner.wait(); });
  wait_until_true([&] { return pool.stats().released == 1; });
  pool.pause();
  CHECK_FALSE(pool.wait_paused_until(1ms));
  release.set();
  CHECK(pool.wait_paused());
  CHECK(pool.stats().completed == 2);
  outer.get();
  pool.resume();
}

FIBER_TEST_CASE(
    "no task starts during a pause, and none is lost, when pauses race with submitters") {
  const int rounds = 100 / static_cast<int>(kSlowdown);
  for (const std::size_t queue_capacity : {0u, 3u, 64u}) {
    std::atomic<bool> frozen{false}, broken{false}, over{false};
    std::atomic<std::uint64_t> ran{0}, accepted{0};
    WaitGroup submitters;
    FiberPool pool({.capacity = 3, .queue_capacity = queue_capacity, .idle_timeout = 1ms});
    submitters.add(6);
    for (int s = 0; s < 6; ++s) {
      go([&, s] {
        const auto task = [&, s] {
          if (frozen.load()) broken.store(true);
          ran.fetch_add(1);
          if (s % 2 == 0) this_fiber::yield();
          if (frozen.load()) broken.store(true);
        };
        while (!over.load()) {
          if (s == 0) {
            pool.run(task);
          } else {
            CHECK(pool.submit(task));
          }
          accepted.fetch_add(1);
        }
        submitters.done();
      });
    }
    for (int round = 0; round < rounds; ++round) {
      const std::uint64_t before = ran.load();
      pool.pause();
      CHECK(pool.wait_paused());
      frozen.store(true);
      for (int i = 0; i < 3; ++i) this_fiber::yield();
      frozen.store(false);
      pool.resume();
      wait_until_true([&] { return ran.load() > before; });
    }
    over.store(true);
    submitters.wait();
    pool.wait_idle();
    CHECK_FALSE(broken.load());
    CHECK(ran.load() == accepted.load());
    CHECK(balanced(pool.stats()));
  }
}

FIBER_TEST_CASE("a pool stays paused until every overlapping pause has ended") {
  FiberPool pool({.capacity = 1, .queue_capacity = 4});
  std::atomic<int> ran{0};
  {
    const PauseScope first(pool);
    {
      const PauseScope second(pool);
      CHECK(pool.submit([&] { ran.fetch_add(1); }));
      pool.pause();
      pool.resume();  // This call ends no other caller's pause.
    }
    CHECK(pool.is_paused_hint());
    for (int i = 0; i < 20; ++i) this_fiber::yield();
    CHECK(ran.load() == 0);
  }
  CHECK(!pool.is_paused_hint());
  pool.wait_idle();
  CHECK(ran.load() == 1);
}

FIBER_TEST_CASE("close() ends all pauses, and an earlier PauseScope does not end a later pause") {
  FiberPool pool({.capacity = 1, .queue_capacity = 4});
  auto before = std::make_unique<PauseScope>(pool);
  CHECK(pool.submit([] {}));
  pool.close(Close::drain);
  pool.join();
  CHECK(pool.stats().completed == 1);
  pool.reopen();
  const PauseScope after(pool);
  before.reset();
  CHECK(pool.is_paused_hint());
}

TEST_SUITE_END();

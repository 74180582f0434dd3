// Tests G2 and G7 (an accepted task runs once, or its waiter gets an error), and the end of a pool.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>
#include <weft/go.hpp>
#include <weft/wait_group.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/death_test.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/parked.hpp"
#include "tests/support/random.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

TEST_SUITE_BEGIN("pool/close");

FIBER_TEST_CASE("close(drain) lets accepted tasks run and refuses new tasks") {
  std::atomic<int> ran{0};
  FiberPool pool({.capacity = 2, .queue_capacity = 100});
  for (int i = 0; i < 50; ++i) {
    CHECK(pool.submit([&] {
      this_fiber::yield();
      ran.fetch_add(1);
    }));
  }
  pool.close(Close::drain);
  CHECK(pool.is_closed_hint());
  CHECK(pool.submit([] {}) == Errc::closed);
  CHECK(pool.try_submit([] {}) == Errc::closed);
  pool.close(Close::drain);
  pool.join();
  CHECK(ran.load() == 50);
  const PoolStats stats = pool.stats();
  CHECK(stats.live == 0);
  CHECK(stats.started == stats.retired);
  CHECK(stats.rejected == 2);
}

FIBER_TEST_CASE(
    "close(discard) starts no further task, and callers that wait for a dropped task continue") {
  Flag release;
  WaitGroup running;
  std::atomic<int> started{0};
  FiberPool pool({.capacity = 2, .queue_capacity = 100});
  running.add(2);
  for (int i = 0; i < 2; ++i) {
    CHECK(pool.submit([&] {
      running.done();
      release.wait();
    }));
  }
  running.wait();
  auto held = std::make_shared<int>(0);
  for (int i = 0; i < 40; ++i) CHECK(pool.submit([&, held] { started.fetch_add(1); }));
  auto waited = pool.async([&] { started.fetch_add(1); });
  auto runner =
      spawn([&] { CHECK_THROWS_AS(pool.run([&] { started.fetch_add(1); }), std::system_error); });
  wait_until_true([&] { return pool.stats().queued == 42; });
  auto waiter = spawn([&] { waited.wait(); });
  await_parked(2);  // This fiber, and the fiber in run().
  pool.close(Close::discard);
  CHECK(held.use_count() == 1);
  CHECK(waited.ready());
  waiter.join();
  runner.join();
  try {
    waited.get();
    CHECK(false);
  } catch (const std::system_error& error) {
    CHECK(error.code() == std::errc::operation_canceled);
  }
  release.set();
  pool.join();
  CHECK(started.load() == 0);
  CHECK(pool.stats().cancelled == 42);
}

FIBER_TEST_CASE(
    "after close(discard), a pool runs only the tasks that its workers have already taken") {
  const int rounds = 100 / static_cast<int>(kSlowdown);
  for (int round = 0; round < rounds; ++round) {
    std::atomic<std::uint64_t> ran{0};
    FiberPool pool({.capacity = 4, .queue_capacity = kUnlimited});
    for (int i = 0; i < 40; ++i) CHECK(pool.submit([&] { ran.fetch_add(1); }));
    if (round % 2 == 0) this_fiber::yield();
    pool.close(Close::discard);
    const PoolStats seen = pool.stats();
    CHECK(seen.queued == 0);
    pool.join();
    CHECK(ran.load() == seen.completed + seen.busy);
    CHECK(pool.stats().cancelled == seen.cancelled);
  }
}

FIBER_TEST_CASE("a blocked submit() returns an error when the pool is closed") {
  for (const Close mode : {Close::drain, Close::discard}) {
    Flag release;
    FiberPool pool({.capacity = 1});
    CHECK(pool.submit([&] { release.wait(); }));
    std::vector<JoinHandle<Accepted>> submitters;
    for (int i = 0; i < 5; ++i) {
      submitters.push_back(spawn([&] { return pool.submit([] { CHECK(false); }); }));
    }
    wait_until_true([&] { return pool.stats().blocked == 5; });
    pool.close(mode);
    for (auto& submitter : submitters) CHECK(submitter.join() == Errc::closed);
    release.set();
  }
}

FIBER_TEST_CASE(
    "close(discard) ends an earlier close(drain) by dropping the tasks that are still queued") {
  Flag release;
  std::atomic<int> ran{0};
  FiberPool pool({.capacity = 1, .queue_capacity = 10});
  CHECK(pool.submit([&] { release.wait(); }));
  for (int i = 0; i < 5; ++i) CHECK(pool.submit([&] { ran.fetch_add(1); }));
  pool.close(Close::drain);
  CHECK(!pool.join_until(1ms));
  pool.close(Close::discard);
  release.set();
  pool.join();
  CHECK(ran.load() <= 1);  // The first task may have been queued before the holder ran.
}

FIBER_TEST_CASE("every accepted task runs or is cancelled when close() races with submit()") {
  const int rounds = 60 / static_cast<int>(kSlowdown);
  for (int round = 0; round < rounds; ++round) {
    const Close mode = round % 2 == 0 ? Close::drain : Close::discard;
    std::atomic<std::uint64_t> accepted{0}, ran{0}, told{0};
    WaitGroup submitters;
    FiberPool pool({.capacity = 3, .queue_capacity = round % 3 == 0 ? 0u : 5u});
    submitters.add(12);
    for (int s = 0; s < 12; ++s) {
      go([&, s] {
        for (;;) {
          if (s % 3 == 0) {
            try {
              auto task = pool.async([&] { ran.fetch_add(1); });
              accepted.fetch_add(1);
              task.get();
            } catch (const std::system_error& error) {
              if (error.code() == Errc::closed) break;
              told.fetch_add(1);
            }
          } else {
            if (!pool.submit([&] { ran.fetch_add(1); })) break;
            accepted.fetch_add(1);
          }
        }
        submitters.done();
      });
    }
    wait_until_true([&] { return ran.load() > 20; });
    pool.close(mode);
    const std::uint64_t cancelled_by_close = pool.stats().cancelled;
    submitters.wait();
    pool.join();
    const PoolStats stats = pool.stats();
    CHECK(stats.submitted == accepted.load());
    CHECK(stats.completed == ran.load());
    CHECK(stats.completed + stats.cancelled == accepted.load());
    CHECK(stats.cancelled == cancelled_by_close);
    CHECK(told.load() <= stats.cancelled);
    if (mode == Close::drain) CHECK(stats.cancelled == 0);
  }
}

FIBER_TEST_CASE("a task may close or resize its own pool") {
  for (const Close mode : {Close::drain, Close::discard}) {
    FiberPool pool({.capacity = 1, .queue_capacity = 5});
    for (int i = 0; i < 3; ++i) {
      const std::error_code error = pool.submit([&] {
        pool.resize(2);
        pool.resize(1);
        pool.close(mode);
        CHECK(pool.is_closed_hint());
        CHECK(pool.submit([] {}) == Errc::closed);
      });
      CHECK((!error || error == Errc::closed));
    }
    pool.join();
  }
}

FIBER_TEST_CASE("a task that waits for its own pool to be idle or joined gets an error") {
  FiberPool pool({.capacity = 2});
  const auto refused = [&](auto wait) {
    try {
      wait();
      return false;
    } catch (const std::system_error& error) {
      return error.code() == std::errc::resource_deadlock_would_occur;
    }
  };
  CHECK(pool.run([&] { return refused([&] { pool.wait_idle(); }); }));
  CHECK(pool.run([&] { return refused([&] { pool.join(); }); }));
  // A task of another pool may wait for this pool.
  FiberPool other({.capacity = 1});
  other.run([&] { pool.wait_idle(); });
}

DEATH_TEST_CASE("a task that destroys its own pool ends the process with a report",
                "a task cannot wait for its own pool") {
  Runtime runtime;
  runtime.run([] {
    auto* pool = new FiberPool({.capacity = 1});
    pool->run([=] { delete pool; });
  });
}

DEATH_TEST_CASE("a task that destroys its own pool ends the process while the pool still exists",
                "the pool still exists") {
  static bool destroyed = false;
  struct Member {
    ~Member() { destroyed = true; }
    void operator()(const std::exception_ptr&) const {}
  };
  std::set_terminate([] {
    (void)std::fputs(destroyed ? "the pool is gone" : "the pool still exists", stderr);
    std::abort();
  });
  Runtime runtime;
  runtime.run([] {
    auto* pool = new FiberPool({.capacity = 1, .on_exception = Member()});
    destroyed = false;  // Temporary members have been destroyed.
    pool->run([=] { delete pool; });
  });
}

FIBER_TEST_CASE("several callers may join a pool, and join() waits until the pool is closed") {
  std::atomic<int> joined{0};
  FiberPool pool({.capacity = 2});
  std::vector<JoinHandle<void>> joiners;
  for (int i = 0; i < 5; ++i) {
    joiners.push_back(spawn([&] {
      pool.join();
      joined.fetch_add(1);
    }));
  }
  await_parked(5);
  CHECK(pool.submit([] {}));
  CHECK(!pool.join_until(1ms));
  CHECK(joined.load() == 0);
  pool.close(Close::drain);
  for (auto& joiner : joiners) joiner.join();
  pool.join();
  CHECK(pool.join_until(0s));
}

FIBER_TEST_CASE("the destructor of a pool runs the accepted tasks") {
  std::atomic<int> ran{0};
  {
    FiberPool pool({.capacity = 3, .queue_capacity = kUnlimited});
    for (int i = 0; i < 100; ++i) {
      CHECK(pool.submit([&] {
        this_fiber::yield();
        ran.fetch_add(1);
      }));
    }
  }
  CHECK(ran.load() == 100);
}

FIBER_TEST_CASE("a caller may destroy a pool after join() even if another fiber closed the pool") {
  const int rounds = 300 / static_cast<int>(kSlowdown);
  for (int round = 0; round < rounds; ++round) {
    auto pool = std::make_unique<FiberPool>(PoolOptions{.capacity = 4, .idle_timeout = 1ms});
    for (int i = 0; i < round % 5; ++i) CHECK(pool->submit([] { this_fiber::yield(); }));
    auto closer = spawn([raw = pool.get()] { raw->close(Close::drain); });
    pool->join();
    pool.reset();
    closer.join();
  }
}

FIBER_TEST_CASE("a reopened pool accepts tasks up to its capacity again") {
  Concurrency gauge;
  FiberPool pool({.capacity = 3, .queue_capacity = 20});
  std::uint64_t accepted = 0;
  for (int round = 0; round < 30; ++round) {
    for (int i = 0; i < 20; ++i) {
      CHECK(pool.submit([&] {
        const Concurrency::Stay stay(gauge);
        this_fiber::yield();
      }));
      ++accepted;
    }
    pool.close(Close::drain);
    // In half of the rounds, the pool is still draining.
    if (round % 2 == 0) pool.join();
    pool.reopen();
    CHECK(!pool.is_closed_hint());
  }
  pool.reopen();
  pool.wait_idle();
  CHECK(gauge.most() <= 3);
  CHECK(pool.stats().completed == accepted);
}

FIBER_TEST_CASE("wait_idle() returns as soon as all queued and running tasks have ended") {
  Flag release;
  std::atomic<int> ran{0};
  FiberPool pool({.capacity = 2, .queue_capacity = kUnlimited});
  pool.wait_idle();
  CHECK(pool.submit([&] { release.wait(); }));
  CHECK(!pool.wait_idle_until(1ms));
  release.set();
  for (int i = 0; i < 200; ++i) CHECK(pool.submit([&] { ran.fetch_add(1); }));
  pool.wait_idle();
  CHECK(ran.load() == 200);
  CHECK(pool.wait_idle_until(0s));
}

TEST_SUITE_END();

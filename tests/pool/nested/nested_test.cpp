// Tests G6: a task may use its own pool, at any capacity.
#include <atomic>
#include <functional>
#include <vector>
#include <weft/go.hpp>
#include <weft/wait_group.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

TEST_SUITE_BEGIN("pool/nested");

FIBER_TEST_CASE("a task in a pool of capacity 1 may run another task and wait for that task") {
  FiberPool pool({.capacity = 1});
  const int result =
      pool.run([&] { return 1 + pool.run([&] { return 2 + pool.run([] { return 4; }); }); });
  CHECK(result == 7);
  CHECK(pool.stats().released == 0);
}

FIBER_TEST_CASE("a task of a full pool gives its slot back while its submit() waits for room") {
  for (const std::size_t queue : {0u, 1u}) {
    std::atomic<int> ran{0};
    FiberPool pool({.capacity = 1, .queue_capacity = queue});
    CHECK(pool.submit([&] {
      for (int i = 0; i < 10; ++i) CHECK(pool.submit([&] { ran.fetch_add(1); }));
    }));
    pool.wait_idle();
    CHECK(ran.load() == 10);
    CHECK(pool.stats().live <= 1);
  }
}

FIBER_TEST_CASE(
    "a tree of tasks that wait for each other completes without exceeding the pool's capacity") {
  const int depth = kSanitized ? 7 : 11;
  for (const std::size_t capacity : {1u, 2u, 5u}) {
    for (const std::size_t queue : {std::size_t{0}, std::size_t{3}, kUnlimited}) {
      Concurrency gauge;
      FiberPool pool({.capacity = capacity, .queue_capacity = queue});
      CHECK(pool.run([&] { return fibonacci(pool, gauge, depth); }) == (kSanitized ? 13 : 89));
      pool.wait_idle();
      CHECK(gauge.most() <= capacity);
      const PoolStats stats = pool.stats();
      CHECK(stats.released == 0);
      CHECK(stats.live <= capacity);
      CHECK(balanced(stats));
    }
  }
}

FIBER_TEST_CASE_WITH("a task whose wait has ended gets the next free slot before all queued tasks",
                     {.workers = {1}}) {
  FiberPool pool({.capacity = 1, .queue_capacity = 10});
  std::vector<int> order;
  CHECK(pool.submit([&] {
    auto inner = pool.async([&] { order.push_back(1); });
    for (int i = 3; i < 8; ++i) {
      CHECK(pool.submit([&, i] {
        this_fiber::yield();
        order.push_back(i);
      }));
    }
    inner.wait();
    order.push_back(2);
  }));
  pool.wait_idle();
  // One task may have taken the slot before the lender requested it.
  CHECK(order == std::vector<int>{1, 3, 2, 4, 5, 6, 7});
}

FIBER_TEST_CASE("a timed wait inside a task ends in time, and the task regains its slot") {
  Flag release;
  FiberPool pool({.capacity = 1});
  pool.run([&] {
    auto inner = pool.async([&] {
      // The holder of the only slot must end before the outer task can continue.
      for (int i = 0; i < 100 && !release.is_set(); ++i) this_fiber::yield();
    });
    (void)inner.wait_until(1us);
    release.set();
    CHECK(pool.stats().busy == 1);
    inner.wait();
  });
  CHECK(pool.stats().released == 0);
}

FIBER_TEST_CASE("two pools whose tasks wait for each other do not run out of slots") {
  WaitGroup done;
  FiberPool left({.capacity = 2}), right({.capacity = 2});
  done.add(10);
  for (int i = 0; i < 10; ++i) {
    CHECK(left.submit([&] {
      right.run([] { this_fiber::yield(); });
      done.done();
    }));
  }
  done.wait();
}

FIBER_TEST_CASE("close(discard) ends a task's wait for a queued task of the same pool") {
  Flag released;
  FiberPool pool({.capacity = 1, .queue_capacity = 5});
  auto outer = pool.async([&] {
    Flag release;
    auto holder = pool.async([&] {
      released.set();
      release.wait();
    });
    auto queued = pool.async([] { CHECK(false); });
    auto closer = spawn([&] {
      released.wait();
      pool.close(Close::discard);
      release.set();
    });
    queued.wait();
    holder.wait();
    closer.join();
    return queued.ready();
  });
  CHECK(outer.get());
  pool.join();
  CHECK(pool.stats().cancelled == 1);
}

FIBER_TEST_CASE("nested tasks continue while their pool is resized and drained") {
  const int rounds = 20 / (kSanitized ? 5 : 1);
  for (int round = 0; round < rounds; ++round) {
    Concurrency gauge;
    FiberPool pool({.capacity = 4, .queue_capacity = 100});
    std::vector<PoolTask<int>> trees;
    for (int i = 0; i < 4; ++i) {
      trees.push_back(pool.async([&] { return fibonacci(pool, gauge, 6); }));
    }
    Random random(static_cast<std::uint64_t>(round));
    while (!trees[0].ready()) {
      pool.resize(1 + random.below(4));
      CHECK(balanced(pool.stats()));
      this_fiber::yield();
    }
    for (auto& tree : trees) CHECK(tree.get() == 8);
    pool.close(Close::drain);
    pool.join();
    CHECK(gauge.most() <= 4);
  }
}

FIBER_TEST_CASE("a task keeps its slot during a wait if release_when_blocked is false") {
  weft::test::Flag release;
  FiberPool pool({.capacity = 2, .queue_capacity = 4, .release_when_blocked = false});
  std::atomic<int> begun{0};
  std::vector<PoolTask<int>> outer;
  for (int i = 0; i < 2; ++i) {
    outer.push_back(pool.async([&] {
      begun.fetch_add(1);
      wait_until_true([&] { return begun.load() == 2; });
      auto inner = pool.async([] {});
      release.wait();
      const bool in_time = inner.wait_until(1ms);
      if (in_time) return 1;
      inner.cancel();
      return 0;
    }));
  }
  wait_until_true([&] { return pool.stats().busy == 2 && pool.stats().queued == 2; });
  release.set();
  int in_time = 0;
  for (auto& task : outer) in_time += task.get();
  // The first wait failed; the task of the other caller may have run in the slot of the first.
  CHECK(in_time <= 1);
  CHECK(pool.stats().released == 0);
  // If a slot is free, nested waits end as usual.
  CHECK(pool.run([&] { return 1 + pool.run([] { return 1; }); }) == 2);
}

FIBER_TEST_CASE(
    "a task that submits to its own full pool keeps its slot if release_when_blocked is false") {
  FiberPool pool({.capacity = 1, .queue_capacity = 1, .release_when_blocked = false});
  auto task = pool.async([&] {
    CHECK(pool.submit([] {}));
    return pool.submit_until(1ms, [] {}) == Errc::timed_out && pool.stats().released == 0 &&
           pool.stats().completed == 0;
  });
  CHECK(task.get());
}

TEST_SUITE_END();

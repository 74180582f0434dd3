// Tests pools inside pools: PoolOptions::parent.
#include <atomic>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>
#include <weft/function_pool.hpp>
#include <weft/go.hpp>
#include <weft/result_group.hpp>
#include <weft/wait_group.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using Gate = weft::test::Flag;

namespace {

// Makes a pool with one slot, which is in use until the test calls open().
class BusyParent {
 public:
  explicit BusyParent(std::size_t queue = 0) : pool({.capacity = 1, .queue_capacity = queue}) {
    holder_ = pool.async([this] {
      begun_.set();
      release_.wait();
    });
    begun_.wait();
  }
  void open() {
    release_.set();
    holder_.wait();
  }

 private:
  Gate begun_;
  Gate release_;
  PoolTask<void> holder_;

 public:
  FiberPool pool;  // Destroyed first.
};

}  // namespace

TEST_SUITE_BEGIN("pool/sub_pool");

FIBER_TEST_CASE("a sub-pool exceeds neither its own capacity nor its parent's capacity") {
  constexpr int kSubmitters = 12;
  const int each = 200 / kSlowdown;
  for (const std::size_t queue : {std::size_t{0}, std::size_t{2}, kUnlimited}) {
    Concurrency all, in_one, in_two;
    std::atomic<int> ran{0};
    FiberPool parent({.capacity = 3, .queue_capacity = queue});
    FiberPool one({.capacity = 2, .queue_capacity = queue, .parent = &parent});
    FiberPool two({.capacity = 2, .parent = &parent});
    WaitGroup submitters;
    submitters.add(kSubmitters);
    for (int i = 0; i < kSubmitters; ++i) {
      go([&, i] {
        Random random(static_cast<std::uint64_t>(i));
        for (int n = 0; n < each; ++n) {
          FiberPool& pool = i % 3 == 0 ? parent : i % 3 == 1 ? one : two;
          const bool yields = random.one_in(2);
          CHECK(pool.submit([&, i, yields] {
            const Concurrency::Stay stay(all);
            std::optional<Concurrency::Stay> inner;
            if (i % 3 != 0) inner.emplace(i % 3 == 1 ? in_one : in_two);
            if (yields) this_fiber::yield();
            ran.fetch_add(1);
          }));
        }
        submitters.done();
      });
    }
    submitters.wait();
    one.wait_idle();
    two.wait_idle();
    parent.wait_idle();
    CHECK(ran.load() == kSubmitters * each);
    CHECK(all.most() <= 3);
    CHECK(in_one.most() <= 2);
    CHECK(in_two.most() <= 2);
    for (FiberPool* pool : {&parent, &one, &two}) CHECK(balanced(pool->stats()));
    CHECK(one.stats().completed == kSubmitters / 3 * each);
  }
}

FIBER_TEST_CASE("a sub-pool may use all the slots of its parent") {
  WaitGroup all_here;
  FiberPool parent({.capacity = 4});
  FiberPool pool({.capacity = 4, .queue_capacity = 8, .parent = &parent});
  all_here.add(4);
  for (int i = 0; i < 4; ++i) {
    CHECK(pool.submit([&] {
      all_here.done();
      all_here.wait();  // Ends only if four run at once.
    }));
  }
  pool.wait_idle();
}

FIBER_TEST_CASE(
    "a sub-pool without a queue refuses tasks or blocks submitters when its parent is full") {
  BusyParent busy;
  FiberPool pool({.capacity = 2, .parent = &busy.pool});
  CHECK(pool.available_hint() == 0);
  CHECK(pool.try_submit([] {}) == Errc::full);
  CHECK(pool.submit_until(Deadline::past(), [] {}) == Errc::timed_out);
  std::vector<int> order;
  std::vector<JoinHandle<void>> waiting;
  for (int i = 0; i < 4; ++i) {
    waiting.push_back(spawn([&, i] { CHECK(pool.submit([&, i] { order.push_back(i); })); }));
    wait_until_true([&] { return pool.stats().blocked == static_cast<std::size_t>(i) + 1; });
  }
  CHECK(pool.stats().busy == 0);
  busy.open();
  for (auto& handle : waiting) handle.join();
  pool.wait_idle();
  CHECK(order == std::vector<int>{0, 1, 2, 3});
  CHECK(balanced(pool.stats()));
}

FIBER_TEST_CASE("queued tasks of a sub-pool run when a full parent has room again") {
  BusyParent busy;
  FiberPool pool({.capacity = 2, .queue_capacity = 3, .parent = &busy.pool});
  std::vector<int> order;
  for (int i = 0; i < 3; ++i) CHECK(pool.try_submit([&, i] { order.push_back(i); }));
  CHECK(pool.try_submit([] {}) == Errc::full);
  CHECK(pool.stats().queued == 3);
  busy.open();
  pool.wait_idle();
  CHECK(order == std::vector<int>{0, 1, 2});
}

FIBER_TEST_CASE("a deadline or a stop request ends a blocked submit() to a sub-pool") {
  BusyParent busy;
  FiberPool pool({.parent = &busy.pool});
  CHECK(pool.submit_until(1us, [] {}) == Errc::timed_out);
  std::stop_source stop;
  auto stopped =
      spawn([&] { CHECK(pool.submit_until(stop.get_token(), [] {}) == Errc::cancelled); });
  wait_until_true([&] { return pool.stats().blocked == 1; });
  stop.request_stop();
  stopped.join();
  busy.open();
  CHECK(pool.run([] { return 1; }) == 1);
  CHECK(pool.stats().rejected == 2);
}

FIBER_TEST_CASE("a parent admits waiting submitters and sub-pools in FIFO order") {
  BusyParent busy;
  FiberPool one({.parent = &busy.pool}), two({.parent = &busy.pool});
  std::vector<int> order;
  std::vector<JoinHandle<void>> waiting;
  FiberPool* const pools[] = {&one, &busy.pool, &two};
  for (std::size_t i = 0; i < 3; ++i) {
    waiting.push_back(spawn(
        [&, i] { CHECK(pools[i]->submit([&, i] { order.push_back(static_cast<int>(i)); })); }));
    // The sub-pool is in the wait queue before its submitter.
    wait_until_true([&] { return pools[i]->stats().blocked == 1; });
  }
  busy.open();
  for (auto& handle : waiting) handle.join();
  busy.pool.wait_idle();
  CHECK(order == std::vector<int>{0, 1, 2});
}

FIBER_TEST_CASE("a parent does not count a waiting sub-pool as a blocked caller") {
  HeldPool held({.capacity = 1, .max_blocked = 1});
  FiberPool& parent = held.pool;
  FiberPool pool({.queue_capacity = 1, .parent = &parent});
  CHECK(pool.submit([] {}));
  CHECK(parent.stats().blocked == 0);
  auto blocked = spawn([&] { CHECK(parent.submit([] {})); });
  wait_until_true([&] { return parent.stats().blocked == 1; });
  CHECK(parent.submit([] {}) == Errc::too_many_waiting);
  held.hold.set();
  blocked.join();
  pool.wait_idle();
  parent.wait_idle();
}

FIBER_TEST_CASE(
    "a task that has one slot may wait for a task of any pool with the same root pool") {
  FiberPool parent({.capacity = 1});
  FiberPool one({.capacity = 1, .parent = &parent});
  FiberPool two({.capacity = 1, .parent = &parent});
  FiberPool inner({.capacity = 1, .parent = &one});
  std::vector<FiberPool*> pools = {&parent, &one, &two, &inner};
  for (FiberPool* first : pools) {
    for (FiberPool* second : pools) {
      for (FiberPool* third : pools) {
        CHECK(first->run([&] {
          return 1 + second->run([&] {
            auto task = third->async([] { return 4; });
            return 2 + task.get();
          });
        }) == 7);
      }
    }
  }
  for (FiberPool* pool : pools) {
    pool->wait_idle();
    CHECK(pool->stats().released == 0);
    CHECK(balanced(pool->stats()));
  }
}

namespace {

int fibonacci(const std::vector<FiberPool*>& pools, Concurrency& gauge, int n) {
  {
    const Concurrency::Stay stay(gauge);
    this_fiber::yield();
  }
  if (n < 2) return n;
  FiberPool& pool = *pools[static_cast<std::size_t>(n) % pools.size()];
  auto first = pool.async([&, n] { return fibonacci(pools, gauge, n - 1); });
  const int second = pools[0]->run([&] { return fibonacci(pools, gauge, n - 2); });
  return first.get() + second;
}

}  // namespace

FIBER_TEST_CASE(
    "a tree of tasks in nested pools completes without exceeding the root pool's capacity") {
  for (const std::size_t capacity : {1u, 2u}) {
    Concurrency gauge;
    FiberPool parent({.capacity = capacity});
    FiberPool one({.capacity = 1, .queue_capacity = 2, .parent = &parent});
    FiberPool two({.capacity = 2, .parent = &parent});
    const std::vector<FiberPool*> pools = {&one, &parent, &two};
    CHECK(parent.run([&] { return fibonacci(pools, gauge, kSanitized ? 7 : 10); }) ==
          (kSanitized ? 13 : 55));
    CHECK(gauge.most() <= capacity);
    for (FiberPool* pool : pools) {
      pool->wait_idle();
      CHECK(balanced(pool->stats()));
    }
  }
}

FIBER_TEST_CASE("a task may wait until another pool with the same root pool is idle or joined") {
  FiberPool parent({.capacity = 1});
  int ran = 0;
  parent.run([&] {
    FiberPool pool({.capacity = 1, .queue_capacity = 5, .parent = &parent});
    for (int i = 0; i < 3; ++i) CHECK(pool.submit([&] { ++ran; }));
    pool.wait_idle();
    CHECK(ran == 3);
    CHECK(pool.submit([&] { ++ran; }));
    pool.close(Close::drain);
    pool.join();
  });
  CHECK(ran == 4);
  FiberPool pool({.capacity = 1, .parent = &parent});
  pool.run([&] { CHECK_THROWS_AS(parent.wait_idle(), std::system_error); });
  pool.run([&] { CHECK_THROWS_AS(pool.join(), std::system_error); });
}

FIBER_TEST_CASE(
    "a sub-pool and its parent accept another run() immediately after a run() has returned") {
  FiberPool parent({.capacity = 1, .on_full = OnFull::reject});
  FiberPool pool({.capacity = 1, .on_full = OnFull::reject, .parent = &parent});
  for (int i = 0; i < 300; ++i) {
    CHECK(pool.run([i] { return i; }) == i);
    CHECK(parent.run([i] { return i; }) == i);
  }
}

FIBER_TEST_CASE(
    "the exception of a sub-pool's task goes to the sub-pool's on_exception, and the task's slot "
    "and worker remain usable") {
  std::atomic<int> reported{0};
  FiberPool parent({.capacity = 1});
  FiberPool pool({.queue_capacity = 20,
                  .on_exception = [&](std::exception_ptr) { reported.fetch_add(1); },
                  .parent = &parent});
  for (int i = 0; i < 10; ++i) CHECK(pool.submit([] { throw std::runtime_error("as it should"); }));
  CHECK_THROWS_AS(pool.run([] { throw 1; }), int);
  pool.wait_idle();
  CHECK(reported.load() == 10);
  CHECK(pool.stats().failed == 11);
  CHECK(parent.stats().failed == 0);
}

FIBER_TEST_CASE("groups and FunctionPools run on a sub-pool") {
  FiberPool parent({.capacity = 1});
  FiberPool pool({.capacity = 1, .parent = &parent});
  ResultGroup<int> group(pool);
  for (int i = 0; i < 5; ++i) group.spawn([i] { return i; });
  CHECK(group.join() == std::vector<int>{0, 1, 2, 3, 4});
  FunctionPool<int, int> twice([](int n) { return 2 * n; }, {.parent = &parent});
  CHECK(parent.run([&] { return twice.process(21); }) == 42);
  CHECK_THROWS_AS((FunctionPool<int, int>(per_worker([] { return [](int n) { return n; }; }),
                                          {.parent = &parent})),
                  std::invalid_argument);
}

FIBER_TEST_CASE("a sub-pool refuses worker options, and the error names the option") {
  FiberPool parent({.capacity = 1});
  CHECK(refused({.min_workers = 1, .parent = &parent}, "min_workers"));
  CHECK(refused({.idle_timeout = 5s, .parent = &parent}, "idle_timeout"));
  CHECK(refused({.parent = &parent, .stack_size = 65536}, "stack_size"));
}

THREAD_TEST_CASE("plain threads submit to a sub-pool and wait for the sub-pool") {
  std::atomic<int> ran{0};
  FiberPool parent({.capacity = 2});
  FiberPool pool({.capacity = 1, .parent = &parent});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 50; ++n) CHECK(pool.submit([&] { ran.fetch_add(1); }));
      CHECK(pool.run([] { return 1; }) == 1);
    });
  }
  for (auto& thread : threads) thread.join();
  pool.wait_idle();
  CHECK(ran.load() == 200);
}

FIBER_TEST_CASE("a parent's statistics count only the parent's own tasks") {
  FiberPool parent({.capacity = 2, .queue_capacity = 1});
  FiberPool pool({.capacity = 2, .queue_capacity = 10, .parent = &parent});
  std::atomic<int> ran{0};
  for (int i = 0; i < 5; ++i) CHECK(pool.submit([&] { ran.fetch_add(1); }));
  pool.wait_idle();
  CHECK(pool.stats().completed == 5);
  wait_until_true([&] { return parent.stats().in_sub_pools == 0; });
  PoolStats stats = parent.stats();
  CHECK(stats.submitted + stats.completed + stats.cancelled + stats.rejected == 0);
  CHECK(balanced(stats));
  CHECK(!parent.wait_for_completed(1, 1ms));
  // Running tasks have slots.
  Gate release;
  CHECK(pool.submit([&] { release.wait(); }));
  wait_until_true([&] { return pool.stats().busy == 1; });
  stats = parent.stats();
  CHECK(stats.busy == 1);
  CHECK(stats.in_sub_pools == 1);
  CHECK(stats.submitted == 0);
  CHECK(balanced(stats));
  CHECK(parent.run([] { return 1; }) == 1);
  CHECK(parent.wait_for_completed(1, 60s));
  release.set();
  pool.wait_idle();
  wait_until_true([&] { return parent.stats().in_sub_pools == 0; });
  CHECK(parent.stats().completed == 1);
}

FIBER_TEST_CASE("a parent's statistics do not count dropped drain tasks") {
  for (const auto when_full : {OnFull::block, OnFull::drop_oldest}) {
    Gate release;
    FiberPool parent({.capacity = 1, .queue_capacity = 2, .on_full = when_full});
    FiberPool pool({.capacity = 2, .queue_capacity = 10, .parent = &parent});
    auto holder = parent.async([&] { release.wait(); });
    wait_until_true([&] { return parent.stats().busy == 1; });
    CHECK(pool.submit([] {}));
    CHECK(parent.stats().in_sub_pools == 1);
    CHECK(parent.submit([] {}));
    if (when_full == OnFull::drop_oldest) {
      CHECK(parent.submit([] {}));  // Replaces the drain task.
      CHECK(parent.stats().in_sub_pools <= 1);
      CHECK(parent.stats().submitted == 3);
    }
    pool.close(Close::discard);
    parent.close(Close::discard);
    release.set();
    holder.wait();
    parent.join();
    const PoolStats stats = parent.stats();
    CHECK(balanced(stats));
    CHECK(stats.in_sub_pools == 0);
    CHECK(stats.completed == 1);
    CHECK(stats.cancelled == stats.submitted - 1);
  }
}

TEST_SUITE_END();

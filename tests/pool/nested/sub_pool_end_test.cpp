// Tests sub-pools whose parents are paused, resized and closed, and the order in which pools end.
#include <atomic>
#include <memory>
#include <vector>
#include <weft/go.hpp>
#include <weft/wait_group.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/death_test.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using Gate = weft::test::Flag;

TEST_SUITE_BEGIN("pool/sub_pool_end");

FIBER_TEST_CASE("no task of a sub-pool starts while the sub-pool or its parent is paused") {
  std::atomic<int> ran{0};
  FiberPool grand({.capacity = 2});
  FiberPool parent({.capacity = 2, .queue_capacity = 4, .parent = &grand});
  FiberPool pool({.capacity = 2, .queue_capacity = 10, .parent = &parent});
  for (FiberPool* paused : {&grand, &parent, &pool}) {
    ran.store(0);
    paused->pause();
    for (int i = 0; i < 5; ++i) CHECK(pool.submit([&] { ran.fetch_add(1); }));
    for (int i = 0; i < 50; ++i) this_fiber::yield();
    paused->wait_paused();
    CHECK(ran.load() == 0);
    paused->resume();
    pool.wait_idle();
    CHECK(ran.load() == 5);
  }
}

FIBER_TEST_CASE(
    "while a parent is paused, a sub-pool starts no further task after its running task has "
    "ended") {
  Gate begun, release;
  std::atomic<int> ran{0};
  FiberPool parent({.capacity = 1});
  FiberPool pool({.capacity = 1, .queue_capacity = 10, .parent = &parent});
  CHECK(pool.submit([&] {
    begun.set();
    release.wait();
  }));
  for (int i = 0; i < 5; ++i) CHECK(pool.submit([&] { ran.fetch_add(1); }));
  begun.wait();
  parent.pause();
  CHECK(!parent.wait_paused_until(Deadline::past()));
  release.set();
  parent.wait_paused();
  CHECK(ran.load() == 0);
  parent.resume();
  pool.wait_idle();
  CHECK(ran.load() == 5);
}

// The drain task that the sub-pool requested comes later, and finds no task.
FIBER_TEST_CASE("a joined sub-pool has no workers even if its parent still queues drain tasks") {
  std::atomic<int> ran{0};
  HeldPool parent({.capacity = 1, .queue_capacity = 8});
  FiberPool pool({.capacity = 2, .queue_capacity = 4, .parent = &parent.pool});
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 2; ++i) CHECK(pool.submit([&] { ran.fetch_add(1); }));
    CHECK(pool.stats().live == 2);
    pool.close(Close::discard);
    pool.join();
    const PoolStats stats = pool.stats();
    CHECK(stats.live == 0);
    CHECK(stats.started == stats.retired);
    CHECK(balanced(stats));
    pool.reopen();
  }
  parent.run_all();
  CHECK(ran.load() == 0);
  CHECK(pool.run([] { return 1; }) == 1);
  pool.wait_idle();
  parent.pool.wait_idle();
  const PoolStats stats = pool.stats();
  CHECK(stats.live == 0);
  CHECK(stats.started == stats.retired);
}

FIBER_TEST_CASE("a paused sub-pool admits blocked submitters while the sub-pool has free slots") {
  Gate begun, release;
  std::atomic<int> ran{0};
  FiberPool parent({.capacity = 1});
  FiberPool pool({.capacity = 2, .parent = &parent});
  auto holder = parent.async([&] {
    begun.set();
    release.wait();
  });
  begun.wait();
  pool.pause();
  std::vector<JoinHandle<void>> waiting;
  for (int i = 0; i < 2; ++i) {
    waiting.push_back(spawn([&] { CHECK(pool.submit([&] { ran.fetch_add(1); })); }));
  }
  // A submitter that comes while another requests a drain task may be accepted because of that
  // drain task.
  wait_until_true([&] {
    const PoolStats stats = pool.stats();
    return stats.blocked + stats.queued == 2 && stats.blocked > 0;
  });
  release.set();
  for (auto& handle : waiting) handle.join();
  CHECK(ran.load() == 0);
  CHECK(pool.stats().queued == 2);
  pool.resume();
  pool.wait_idle();
  CHECK(ran.load() == 2);
}

FIBER_TEST_CASE("a parent's reduced capacity also limits its sub-pools") {
  Concurrency gauge;
  FiberPool parent({.capacity = 4});
  FiberPool pool({.capacity = 4, .queue_capacity = 1000, .parent = &parent});
  const auto task = [&] {
    const Concurrency::Stay stay(gauge);
    this_fiber::yield();
  };
  for (int i = 0; i < 100; ++i) CHECK(pool.submit(task));
  parent.resize(1);
  parent.wait_idle();
  gauge.forget_most();
  for (int i = 0; i < 50; ++i) CHECK(pool.submit(task));
  pool.wait_idle();
  CHECK(gauge.most() == 1);
  parent.resize(3);
  pool.resize(2);
  gauge.forget_most();
  for (int i = 0; i < 50; ++i) CHECK(pool.submit(task));
  pool.wait_idle();
  CHECK(gauge.most() <= 2);
}

FIBER_TEST_CASE("a draining parent runs only the tasks that its sub-pools have already accepted") {
  std::atomic<int> ran{0};
  HeldPool held({.capacity = 1});
  FiberPool& parent = held.pool;
  FiberPool pool({.capacity = 1, .queue_capacity = 6, .parent = &parent});  // One for `inner`.
  FiberPool inner({.capacity = 1, .queue_capacity = 5, .parent = &pool});
  for (int i = 0; i < 5; ++i) {
    CHECK(pool.submit([&] { ran.fetch_add(1); }));
    CHECK(inner.submit([&] { ran.fetch_add(1); }));
  }
  auto blocked = spawn([&] { CHECK(pool.submit([] {}) == Errc::closed); });
  wait_until_true([&] { return pool.stats().blocked == 1; });
  parent.close(Close::drain);
  CHECK(pool.is_closed_hint());
  CHECK(inner.try_submit([] {}) == Errc::closed);
  blocked.join();
  held.hold.set();
  parent.join();  // Its sub-pools still live.
  CHECK(ran.load() == 10);
  CHECK(parent.stats().live == 0);
  pool.reopen();  // Has no effect before the parent is open.
  CHECK(pool.submit([] {}) == Errc::closed);
  parent.reopen();
  pool.reopen();
  CHECK(pool.run([] { return 1; }) == 1);
  CHECK(inner.submit([] {}) == Errc::closed);
}

FIBER_TEST_CASE(
    "close(discard) of a parent drops the queued tasks of its sub-pools and ends waits for them") {
  for (const std::size_t queue : {0u, 3u}) {
    Gate begun, release;
    std::atomic<int> ran{0};
    FiberPool parent({.capacity = 1, .queue_capacity = queue});
    FiberPool pool({.capacity = 2, .queue_capacity = 5, .parent = &parent});
    CHECK(parent.submit([&] {
      begun.set();
      release.wait();
    }));
    begun.wait();
    std::vector<PoolTask<void>> tasks;
    for (int i = 0; i < 4; ++i) tasks.push_back(pool.async([&] { ran.fetch_add(1); }));
    parent.close(Close::discard);
    release.set();
    for (auto& task : tasks) CHECK_THROWS_AS(task.get(), std::system_error);
    parent.join();
    pool.join();
    CHECK(ran.load() == 0);
    CHECK(pool.stats().cancelled == 4);
    parent.reopen();
    pool.reopen();
    CHECK(pool.run([] { return 1; }) == 1);
    CHECK(parent.run([] { return 1; }) == 1);
    pool.wait_idle();
    CHECK(balanced(pool.stats()));
    CHECK(balanced(parent.stats()));
  }
}

FIBER_TEST_CASE("close(cancel) of a parent asks the tasks of its sub-pools to stop") {
  Gate begun;
  FiberPool parent({.capacity = 1});
  FiberPool pool({.capacity = 1, .parent = &parent});
  auto task = pool.async([&](std::stop_token token) {
    begun.set();
    while (!token.stop_requested()) this_fiber::yield();
  });
  begun.wait();
  parent.close(Close::cancel);
  task.wait();
}

FIBER_TEST_CASE("a sub-pool may be destroyed while its parent is paused or full") {
  Gate begun, release;
  FiberPool parent({.capacity = 1, .queue_capacity = 2});
  CHECK(parent.submit([&] {
    begun.set();
    release.wait();
  }));
  begun.wait();
  parent.pause();
  for (int i = 0; i < 5; ++i) {
    FiberPool pool({.capacity = 2, .queue_capacity = 5, .parent = &parent});
    auto task = pool.async([] { CHECK(false); });
    pool.close(Close::discard);
    pool.join();
    CHECK_THROWS_AS(task.get(), std::system_error);
  }
  release.set();
  parent.resume();
  parent.wait_idle();
  CHECK(parent.run([] { return 1; }) == 1);
}

FIBER_TEST_CASE("a parent with drop_oldest drops no task of a sub-pool") {
  Gate begun, release;
  std::atomic<int> ran{0};
  FiberPool parent({.capacity = 1, .queue_capacity = 1, .on_full = OnFull::drop_oldest});
  FiberPool pool({.capacity = 2, .queue_capacity = 5, .parent = &parent});
  CHECK(parent.submit([&] {
    begun.set();
    release.wait();
  }));
  begun.wait();
  for (int i = 0; i < 3; ++i) CHECK(pool.submit([&] { ran.fetch_add(1); }));
  for (int i = 0; i < 3; ++i) CHECK(parent.submit([&] { ran.fetch_add(10); }));
  release.set();
  pool.wait_idle();
  parent.wait_idle();
  CHECK(ran.load() == 13);
  CHECK(balanced(parent.stats()));
}

namespace {

// A parent, its two sub-pools, and a sub-pool of the first one.
struct Nested {
  static constexpr std::size_t kPools = 4;
  static constexpr std::size_t kMost = 3;

  FiberPool parent{{.capacity = kMost, .queue_capacity = 2}};
  FiberPool one{{.capacity = 2, .queue_capacity = 3, .parent = &parent}};
  FiberPool two{{.capacity = 3, .parent = &parent}};
  FiberPool inner{{.capacity = 2, .parent = &one}};
  FiberPool* const pools[kPools] = {&parent, &one, &two, &inner};
  Concurrency gauge;
  std::atomic<std::uint64_t> ran{0};
  std::atomic<std::uint64_t> accepted{0};

  void submit_at_random(std::uint64_t stream) {
    Random random(stream);
    for (int n = 0; n < 60; ++n) {
      FiberPool& pool = *pools[random.below(kPools)];
      FiberPool& other = *pools[random.below(kPools)];
      const bool nests = random.one_in(5);
      const auto task = [this, &other, nests] {
        {
          const Concurrency::Stay stay(gauge);
          this_fiber::yield();
        }
        ran.fetch_add(1);
        if (nests && other.submit([this] { ran.fetch_add(1); })) accepted.fetch_add(1);
      };
      const std::error_code error = random.one_in(3) ? pool.try_submit(task) : pool.submit(task);
      if (!error) accepted.fetch_add(1);
    }
  }
  void disturb(std::uint64_t stream) {
    Random random(stream);
    for (int n = 0; n < 40; ++n) {
      FiberPool& pool = *pools[random.below(kPools)];
      switch (random.below(4)) {
        case 0:
          pool.resize(1 + random.below(kMost));
          break;
        case 1:
          pool.pause();
          break;
        case 2:
          pool.resume();
          break;
        default:
          CHECK(balanced(pool.stats()));
      }
      this_fiber::yield();
    }
    for (FiberPool* pool : pools) pool->resume();
  }
};

}  // namespace

FIBER_TEST_CASE(
    "the statistics of nested pools stay consistent when submit() calls race with pauses, resizes "
    "and closes") {
  const int rounds = kSanitized ? 4 : 20;
  for (int round = 0; round < rounds; ++round) {
    Nested nested;
    const bool discards = round % 3 == 1;
    WaitGroup submitters;
    submitters.add(12);
    for (std::uint64_t i = 0; i < 12; ++i) {
      go([&, i] {
        nested.submit_at_random(i);
        submitters.done();
      });
    }
    auto disturber = spawn([&, round] { nested.disturb(static_cast<std::uint64_t>(100 + round)); });
    disturber.join();
    if (round % 3 == 0) nested.parent.close(Close::drain);
    if (discards) nested.parent.close(Close::discard);
    submitters.wait();
    nested.parent.close(Close::drain);
    nested.parent.join();
    std::uint64_t cancelled = 0;
    for (FiberPool* pool : nested.pools) {
      pool->join();
      const PoolStats stats = pool->stats();
      CHECK(balanced(stats));
      CHECK(stats.busy + stats.queued + stats.released + stats.blocked == 0);
      if (pool != &nested.parent) cancelled += stats.cancelled;
    }
    CHECK(nested.gauge.most() <= Nested::kMost);
    CHECK(nested.ran.load() <= nested.accepted.load());
    if (!discards) CHECK(nested.ran.load() == nested.accepted.load());
    if (!discards) CHECK(cancelled == 0);
  }
}

DEATH_TEST_CASE(
    "the process ends with a report when a parent pool is destroyed before its sub-pool",
    "'outer' ends before its sub-pools") {
  weft::run([] {
    auto parent = std::make_unique<FiberPool>(PoolOptions{.name = "outer"});
    const FiberPool pool({.parent = parent.get()});
    parent.reset();
  });
}

TEST_SUITE_END();

// Tests SubmitOptions: weights.
#include <weft/submit_options.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>
#include <weft/go.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

TEST_SUITE_BEGIN("pool/weight");

FIBER_TEST_CASE(
    "the total weight of running tasks never exceeds the capacity, and no heavy task is passed "
    "over") {
  constexpr std::size_t kCapacity = 5;
  FiberPool pool({.capacity = kCapacity, .queue_capacity = 20});
  std::atomic<std::size_t> running{0};
  std::atomic<std::size_t> most{0};
  std::atomic<int> ended{0};
  std::vector<JoinHandle<void>> submitters;
  for (std::size_t s = 0; s < 8; ++s) {
    submitters.push_back(spawn([&, s] {
      for (std::size_t i = 0; i < 100; ++i) {
        const std::size_t weight = 1 + (i + s) % kCapacity;
        CHECK(pool.submit({.weight = weight}, [&, weight] {
          const std::size_t now = running.fetch_add(weight) + weight;
          std::size_t seen = most.load();
          while (now > seen && !most.compare_exchange_weak(seen, now)) {
          }
          this_fiber::yield();
          running.fetch_sub(weight);
          ++ended;
        }));
        if (i % 7 == 0) CHECK(pool.submit([&] { ++ended; }));
      }
    }));
  }
  for (auto& submitter : submitters) submitter.join();
  pool.wait_idle();
  CHECK(most <= kCapacity);
  CHECK(ended == 8 * (100 + 15));
  CHECK(pool.available_hint() == kCapacity);
  CHECK(balanced(pool.stats()));
}

FIBER_TEST_CASE("later tasks wait while a heavy task waits for its slots") {
  FiberPool pool({.capacity = 3, .queue_capacity = 10});
  weft::test::Flag hold;
  Record record;
  CHECK(pool.submit([&] { hold.wait(); }));
  wait_until_true([&] { return pool.stats().busy == 1; });
  CHECK(pool.submit({.weight = 3}, [&] { record.add(1); }));
  CHECK(pool.submit([&] { record.add(2); }));
  for (int i = 0; i < 100; ++i) this_fiber::yield();
  CHECK(record.values().empty());
  hold.set();
  pool.wait_idle();
  CHECK(record.values() == std::vector<int>{1, 2});
}

FIBER_TEST_CASE(
    "a task takes as much room in the queue as its weight, and is refused if heavier than the "
    "capacity") {
  FiberPool pool({.capacity = 4});
  weft::test::Flag hold;
  CHECK(pool.submit({.weight = 5}, [] {}) == Errc::too_heavy);
  CHECK(pool.submit({.weight = 3}, [&] { hold.wait(); }));
  CHECK(pool.try_submit({.weight = 2}, [] {}) == Errc::full);
  CHECK(pool.available_hint() == 1);
  CHECK(pool.try_submit({.weight = 1}, [] {}));
  hold.set();
  pool.wait_idle();
  CHECK(pool.try_submit({.weight = 4}, [] {}));
}

FIBER_TEST_CASE("blocked submitters of tasks with different weights are admitted in order") {
  FiberPool pool({.capacity = 4});
  weft::test::Flag hold;
  Record record;
  CHECK(pool.submit({.weight = 3}, [&] { hold.wait(); }));
  auto heavy = spawn([&] { CHECK(pool.submit({.weight = 4}, [&] { record.add(1); })); });
  wait_until_true([&] { return pool.stats().blocked == 1; });
  // There is a free slot, but an earlier task waits.
  CHECK(pool.try_submit([] {}) == Errc::full);
  auto light = spawn([&] { CHECK(pool.submit([&] { record.add(2); })); });
  wait_until_true([&] { return pool.stats().blocked == 2; });
  hold.set();
  heavy.join();
  light.join();
  pool.wait_idle();
  CHECK(record.values() == std::vector<int>{1, 2});
}

FIBER_TEST_CASE("submitters are admitted when the earlier submitter of a heavy task gives up") {
  weft::test::Flag hold;
  FiberPool pool({.capacity = 4});
  std::stop_source source;
  CHECK(pool.submit({.weight = 3}, [&] { hold.wait(); }));
  auto heavy = spawn([&] {
    CHECK(pool.submit({.weight = 2, .stop = source.get_token()}, [] {}) == Errc::cancelled);
  });
  wait_until_true([&] { return pool.stats().blocked == 1; });
  auto light = spawn([&] { CHECK(pool.submit([] {})); });
  wait_until_true([&] { return pool.stats().blocked == 2; });
  source.request_stop();
  heavy.join();
  light.join();  // No task has ended meanwhile.
  hold.set();
}

FIBER_TEST_CASE("a task that is heavier than a reduced capacity runs alone in its pool") {
  HeldPool held({.capacity = 1, .queue_capacity = 100});
  held.pool.resize(4);
  std::atomic<bool> alone{false};
  CHECK(held.pool.submit({.weight = 4}, [&] { alone = held.pool.stats().busy == 1; }));
  held.pool.resize(2);
  held.run_all();
  CHECK(alone);
}

FIBER_TEST_CASE(
    "callables dropped to make room for a heavy task are destroyed while the pool's lock is not "
    "held") {
  Flag hold;
  std::atomic<int> destroyed{0};
  FiberPool pool({.capacity = 2, .queue_capacity = 2, .on_full = OnFull::drop_oldest});
  const auto look = [&](int* /*none*/) {
    (void)pool.stats();  // This call would wait forever if the pool were locked.
    ++destroyed;
  };
  for (int i = 0; i < 2; ++i) CHECK(pool.submit([&] { hold.wait(); }));
  wait_until_true([&] { return pool.stats().busy == 2; });
  for (int i = 0; i < 2; ++i) {
    CHECK(pool.submit([held = std::shared_ptr<int>(nullptr, look)] {}));
  }
  CHECK(pool.submit({.weight = 2}, [] {}));
  CHECK(destroyed == 2);
  CHECK(pool.stats().cancelled == 2);
  hold.set();
  pool.wait_idle();
}

FIBER_TEST_CASE(
    "a pool drops queued tasks to make room for a heavy task only if that task then fits") {
  Flag hold;
  FiberPool pool({.capacity = 4, .queue_capacity = 2, .on_full = OnFull::drop_oldest});
  for (int i = 0; i < 4; ++i) CHECK(pool.submit([&] { hold.wait(); }));
  wait_until_true([&] { return pool.stats().busy == 4; });
  for (int i = 0; i < 2; ++i) CHECK(pool.submit([] {}));
  CHECK(pool.submit({.weight = 3}, [] { CHECK(false); }) == Errc::full);
  CHECK(pool.stats().cancelled == 0);
  CHECK(pool.submit({.weight = 2}, [] {}));
  CHECK(pool.stats().cancelled == 2);
  hold.set();
  pool.wait_idle();
}

FIBER_TEST_CASE(
    "a blocked submitter is admitted to the queue even if the next queued task is too heavy to "
    "start") {
  Flag first, second;
  FiberPool pool({.capacity = 2, .queue_capacity = 2});
  CHECK(pool.submit([&] { first.wait(); }));
  CHECK(pool.submit([&] { second.wait(); }));
  CHECK(pool.submit({.weight = 2}, [] {}));
  auto blocked = spawn([&] { CHECK(pool.submit([] {})); });
  wait_until_true([&] { return pool.stats().blocked == 1; });
  first.set();
  blocked.join();
  CHECK(pool.stats().queued == 2);
  second.set();
  pool.wait_idle();
}

FIBER_TEST_CASE(
    "the end of a heavy task admits as many blocked submitters as the freed slots allow") {
  Flag heavy, light;
  FiberPool pool({.capacity = 3});
  CHECK(pool.submit({.weight = 3}, [&] { heavy.wait(); }));
  std::vector<JoinHandle<void>> blocked;
  for (int i = 0; i < 3; ++i) {
    blocked.push_back(spawn([&] { CHECK(pool.submit([&] { light.wait(); })); }));
  }
  wait_until_true([&] { return pool.stats().blocked == 3; });
  heavy.set();
  wait_until_true([&] { return pool.stats().busy == 3; });
  light.set();
  blocked.clear();
  pool.wait_idle();
}

// A sub-pool immediately replaces a dropped drain task.
FIBER_TEST_CASE(
    "a heavy task may replace the drain tasks that a sub-pool has queued in its parent") {
  Flag hold;
  std::atomic<int> ran{0};
  FiberPool parent({.capacity = 2, .queue_capacity = 2, .on_full = OnFull::drop_oldest});
  FiberPool sub({.capacity = 2, .queue_capacity = kUnlimited, .parent = &parent});
  for (int i = 0; i < 2; ++i) CHECK(parent.submit([&] { hold.wait(); }));
  wait_until_true([&] { return parent.stats().busy == 2; });
  for (int i = 0; i < 5; ++i) CHECK(sub.submit([&] { ran.fetch_add(1); }));
  CHECK(parent.stats().queued == 2);
  CHECK(parent.submit({.weight = 2}, [&] { ran.fetch_add(10); }));
  hold.set();
  sub.wait_idle();
  parent.wait_idle();
  CHECK(ran.load() == 15);
}

FIBER_TEST_CASE("a heavy task that waits for its own pool releases all its slots") {
  FiberPool pool({.capacity = 4});
  const int sum = pool.run({.weight = 4}, [&] {
    const int inner = pool.run({.weight = 4}, [&] { return pool.run([] { return 1; }) + 2; });
    CHECK(pool.available_hint() == 0);
    return inner + 4;
  });
  CHECK(sum == 7);
  CHECK(pool.available_hint() == 4);
}

FIBER_TEST_CASE("heavy tasks regain their slots under a constant load of light tasks") {
  FiberPool pool({.capacity = 3, .queue_capacity = 3});
  std::optional<LightTasks> light(pool);
  for (int round = 0; round < 20; ++round) {
    pool.run({.weight = 3}, [&] {
      pool.run([] { this_fiber::yield(); });
      CHECK(pool.stats().busy == 1);
    });
  }
  light.reset();
  pool.wait_idle();
  CHECK(balanced(pool.stats()));
  CHECK(pool.available_hint() == 3);
}

FIBER_TEST_CASE(
    "tasks never exceed the capacity when they have different weights and wait for each other") {
  constexpr std::size_t kCapacity = 6;
  FiberPool pool({.capacity = kCapacity, .queue_capacity = 4});
  std::atomic<std::size_t> running{0};
  std::atomic<bool> exceeded{false};
  const auto counted = [&](std::size_t weight, auto inside) {
    if (running.fetch_add(weight) + weight > kCapacity) exceeded = true;
    this_fiber::yield();
    running.fetch_sub(weight);
    inside();
    if (running.fetch_add(weight) + weight > kCapacity) exceeded = true;
    running.fetch_sub(weight);
  };
  std::vector<JoinHandle<void>> callers;
  for (std::size_t c = 0; c < 8; ++c) {
    callers.push_back(spawn([&, c] {
      for (std::size_t i = 0; i < 30; ++i) {
        const std::size_t outer = 1 + (c + i) % kCapacity;
        const std::size_t inner = 1 + (c * i) % kCapacity;
        pool.run({.weight = outer}, [&] {
          counted(outer, [&] { pool.run({.weight = inner}, [&] { counted(inner, [] {}); }); });
        });
      }
    }));
  }
  for (auto& caller : callers) caller.join();
  CHECK_FALSE(exceeded);
  pool.wait_idle();
  CHECK(pool.available_hint() == kCapacity);
}

TEST_SUITE_END();

// Tests weights in nested pools: a task takes as many slots of each parent as its weight.
#include <atomic>
#include <cstddef>
#include <optional>
#include <vector>
#include <weft/go.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

using namespace weft;
using namespace weft::test;
using Gate = weft::test::Flag;

TEST_SUITE_BEGIN("pool/sub_pool_weight");

FIBER_TEST_CASE("a task with weight n takes n slots of its pool and of each ancestor pool") {
  FiberPool root({.capacity = 8});
  FiberPool middle({.capacity = 6, .parent = &root});
  FiberPool inner({.capacity = 6, .parent = &middle});
  Gate hold;
  CHECK(inner.submit({.weight = 4}, [&] { hold.wait(); }));
  wait_until_true([&] { return root.available_hint() == 4 && middle.available_hint() == 2; });
  CHECK(inner.available_hint() == 2);
  std::atomic<int> started{0};
  while (root.try_submit([&] {
    ++started;
    hold.wait();
  })) {
  }
  CHECK(root.available_hint() == 0);
  hold.set();
  root.wait_idle();
  CHECK(started == 4);
  CHECK(root.available_hint() == 8);
  CHECK(middle.available_hint() == 6);
}

FIBER_TEST_CASE(
    "a heavy task of a sub-pool does not starve while it waits for slots of the parent") {
  FiberPool parent({.capacity = 3, .queue_capacity = 3});
  FiberPool sub({.capacity = 3, .queue_capacity = 10, .parent = &parent});
  std::optional<LightTasks> light(parent);
  for (int round = 0; round < 20; ++round) {
    sub.run({.weight = 3}, [&] { CHECK(parent.stats().busy == 1); });
  }
  light.reset();
  parent.wait_idle();
  CHECK(balanced(parent.stats()));
  CHECK(parent.available_hint() == 3);
}

FIBER_TEST_CASE("a blocked submitter of a sub-pool requests at most one worker from the parent") {
  constexpr std::size_t kCapacity = 1'000;
  FiberPool parent({.capacity = kCapacity});
  FiberPool sub({.capacity = kCapacity, .parent = &parent});
  Gate hold;
  CHECK(sub.submit({.key = 1}, [&] { hold.wait(); }));
  auto heavy = spawn([&] { CHECK(sub.submit({.weight = kCapacity}, [] {})); });
  wait_until_true([&] { return sub.stats().blocked == 1; });
  auto behind_heavy = spawn([&] { CHECK(sub.submit([] {})); });
  wait_until_true([&] { return sub.stats().blocked == 2; });
  auto behind_key = spawn([&] { CHECK(sub.submit({.key = 1}, [] {})); });
  wait_until_true([&] { return sub.stats().blocked == 3; });
  CHECK(sub.stats().started <= 4);
  hold.set();
  for (auto* caller : {&heavy, &behind_heavy, &behind_key}) caller->join();
}

FIBER_TEST_CASE("a task heavier than a parent's capacity runs alone in that parent") {
  FiberPool parent({.capacity = 2});
  FiberPool sub({.capacity = 5, .parent = &parent});
  Gate hold;
  CHECK(parent.submit([&] { hold.wait(); }));
  auto heavy = sub.async({.weight = 5}, [&] { return parent.stats().busy; });
  hold.set();
  CHECK(heavy.get() == 1);
}

FIBER_TEST_CASE(
    "the total weight of running tasks in nested pools never exceeds any pool's capacity") {
  constexpr std::size_t kCapacity = 6;
  FiberPool parent({.capacity = kCapacity, .queue_capacity = 4});
  FiberPool left({.capacity = 4, .queue_capacity = 3, .parent = &parent});
  FiberPool right({.capacity = 5, .parent = &parent});
  FiberPool inner({.capacity = 3, .queue_capacity = 2, .parent = &right});
  std::atomic<std::size_t> running{0};
  std::atomic<bool> exceeded{false};
  const auto take_turn = [&](std::size_t weight) {
    if (running.fetch_add(weight) + weight > kCapacity) exceeded = true;
    this_fiber::yield();
    running.fetch_sub(weight);
  };
  std::vector<JoinHandle<void>> callers;
  for (std::uint64_t c = 0; c < 8; ++c) {
    callers.push_back(spawn([&, c] {
      Random random(c);
      for (int i = 0; i < 40; ++i) {
        FiberPool* const pools[] = {&parent, &left, &right, &inner};
        FiberPool& first = *pools[random.below(4)];
        FiberPool& second = *pools[random.below(4)];
        const std::size_t outer = 1 + random.below(3);
        const std::size_t nested = 1 + random.below(3);
        // A task that waits for another task gives back all its slots, in every pool.
        first.run({.weight = outer}, [&] {
          take_turn(outer);
          second.run({.weight = nested}, [&] { take_turn(nested); });
          take_turn(outer);
        });
      }
    }));
  }
  for (auto& caller : callers) caller.join();
  CHECK_FALSE(exceeded);
  parent.wait_idle();
  for (FiberPool* pool : {&parent, &left, &right, &inner}) {
    CHECK(balanced(pool->stats()));
    CHECK(pool->available_hint() == pool->capacity());
  }
}

TEST_SUITE_END();

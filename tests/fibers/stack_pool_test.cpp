#include "fibers/stack_pool.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <set>
#include <thread>
#include <vector>

#include "tests/fibers/stack_tools.hpp"
#include "tests/support/random.hpp"

namespace {

using weft::fibers::Stack;
using weft::fibers::StackDepot;
using weft::fibers::StackPool;
using weft::fibers::stacks_per_chain;
using weft::test::Coroutine;

TEST_SUITE_BEGIN("fibers/stack_pool");

TEST_CASE(
    "a stack pool hands out the most recently returned stack first, without using the shared "
    "depot") {
  StackDepot depot(&Coroutine::entry);
  StackPool pool(depot);
  CHECK(pool.take_hot(2) == nullptr);
  Stack* first = pool.take(2);
  Stack* second = pool.take(2);
  REQUIRE(first != nullptr);
  REQUIRE(second != nullptr);
  const auto carved = depot.space().counts().carved;
  CHECK(carved == stacks_per_chain(2));
  for (int i = 0; i < 100; ++i) {
    pool.give(*first);
    pool.give(*second);
    CHECK(pool.take_hot(2) == second);
    CHECK(pool.take_hot(2) == first);
  }
  CHECK(depot.space().counts().carved == carved);
}

TEST_CASE("a stack pool does not mix stacks of different sizes") {
  StackDepot depot(&Coroutine::entry);
  StackPool pool(depot);
  std::vector<Stack*> taken;
  for (unsigned size_class = 0; size_class < weft::fibers::kStackSizes; ++size_class) {
    Stack* stack = pool.take(size_class);
    REQUIRE(stack != nullptr);
    CHECK(stack->size_class == size_class);
    taken.push_back(stack);
  }
  for (Stack* stack : taken) pool.give(*stack);
  for (unsigned size_class = 0; size_class < weft::fibers::kStackSizes; ++size_class) {
    CHECK(pool.take_hot(size_class) == taken[size_class]);
  }
}

TEST_CASE(
    "a new stack pool reuses the stacks of an earlier pool until the shared depot is trimmed") {
  StackDepot depot(&Coroutine::entry);
  constexpr std::size_t kCount = 200;
  for (int round = 0; round < 3; ++round) {
    StackPool pool(depot);
    std::set<Stack*> stacks;
    while (stacks.size() < kCount) REQUIRE(stacks.insert(pool.take(2)).second);
    for (Stack* stack : stacks) pool.give(*stack);
  }
  const auto counts = depot.space().counts();
  CHECK(counts.carved <= kCount + stacks_per_chain(2));
  CHECK(counts.cold == 0);
  CHECK(depot.has_surplus_hint());
  CHECK(depot.trim(1));
  CHECK(depot.space().counts().cold == stacks_per_chain(2));
  while (depot.trim(1)) {
  }
  CHECK(!depot.has_surplus_hint());
  CHECK(depot.space().counts().cold == counts.carved);
  StackPool pool(depot);
  CHECK(pool.take(2) != nullptr);
  CHECK(depot.space().counts().carved == counts.carved);
}

TEST_CASE("stack pools on several threads never hold the same stack") {
  StackDepot depot(&Coroutine::entry);
  std::vector<std::thread> threads;
  for (unsigned number = 1; number <= 4; ++number) {
    threads.emplace_back([&depot, number] {
      weft::test::Random random(number);
      StackPool pool(depot);
      std::vector<Stack*> held;
      for (int step = 0; step < 3'000; ++step) {
        if (random.one_in(2) && held.size() < 150) {
          Stack* stack = pool.take(0);
          if (stack == nullptr) FAIL_CHECK("no stack");
          if (stack == nullptr) return;
          const auto before = stack->fiber_id.load(weft::detail::relaxed);
          if (before != 0) FAIL_CHECK("this stack is ", before, "'s");
          stack->fiber_id.store(number, weft::detail::relaxed);
          held.push_back(stack);
        } else if (!held.empty()) {
          Stack* stack = held.back();
          held.pop_back();
          if (stack->fiber_id.load(weft::detail::relaxed) != number) FAIL_CHECK("taken away");
          stack->fiber_id.store(0, weft::detail::relaxed);
          pool.give(*stack);
        }
        if (random.one_in(500)) (void)depot.trim(1);
      }
      for (Stack* stack : held) {
        stack->fiber_id.store(0, weft::detail::relaxed);
        pool.give(*stack);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  while (depot.trim(100)) {
  }
  const auto counts = depot.space().counts();
  CHECK(counts.carved == counts.cold);
}

TEST_SUITE_END();

}  // namespace

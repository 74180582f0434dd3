#include "scheduler/queues/ready_list.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "fibers/fiber.hpp"
#include "fibers/stack.hpp"
#include "scheduler/queues/inject_queue.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

namespace {

using weft::fibers::Fiber;
using weft::scheduler::Chain;
using weft::scheduler::InjectQueue;
using weft::scheduler::ReadyList;
using weft::test::kSlowdown;

std::vector<Fiber*> drain(Chain chain) {
  std::vector<Fiber*> fibers;
  while (Fiber* fiber = chain.take_first()) fibers.push_back(fiber);
  return fibers;
}

TEST_SUITE_BEGIN("scheduler/ready_list");

TEST_CASE("an empty ready list returns nothing") {
  ReadyList list;
  CHECK(list.take(10).is_empty());
  list.push_last(Chain{});
  list.push_first(Chain{});
  CHECK(list.size_hint() == 0);
}

TEST_CASE("a merge into a ready list walks past at most kMostPassed fibers") {
  ReadyList list;
  constexpr std::size_t kCount = ReadyList::kMostPassed + 10;
  std::vector<Fiber> fibers(kCount + 1);
  std::vector<weft::fibers::Stack> stacks(kCount + 1);
  for (std::size_t i = 0; i <= kCount; ++i) {
    fibers[i].stack.store(&stacks[i], weft::detail::relaxed);
    fibers[i].set_ready_since(static_cast<std::int64_t>(i) * Fiber::kTick);
  }
  for (std::size_t i = 0; i < kCount; ++i) list.push_last(fibers[i]);
  Chain newest;
  newest.append(fibers[kCount]);
  list.merge(newest, 0);
  list.merge(Chain{}, 0);
  CHECK(list.size_hint() == kCount + 1);
  for (std::size_t i = 0; i < ReadyList::kMostPassed; ++i) {
    REQUIRE(list.take(1).first == &fibers[i]);
  }
  CHECK(list.take(1).first == &fibers[kCount]);
  CHECK(list.take(1).first == &fibers[ReadyList::kMostPassed]);
}

// The oracle is a deque.
TEST_CASE("a ready list returns the same fibers as a std::deque under random operations") {
  weft::test::Random random(1);
  ReadyList list;
  std::vector<Fiber> fibers(60'000);
  std::deque<Fiber*> oracle;
  std::size_t next = 0;
  for (int step = 0; step < 20'000; ++step) {
    switch (random.below(4)) {
      case 0:
        oracle.push_back(&fibers[next]);
        list.push_last(fibers[next++]);
        break;
      case 1:
      case 2: {
        Chain chain;
        std::vector<Fiber*> added;
        for (std::uint64_t i = random.below(5); i > 0; --i) {
          added.push_back(&fibers[next]);
          chain.append(fibers[next++]);
        }
        const bool at_the_end = random.one_in(2);
        at_the_end ? list.push_last(chain) : list.push_first(chain);
        oracle.insert(at_the_end ? oracle.end() : oracle.begin(), added.begin(), added.end());
        break;
      }
      default: {
        const std::size_t most = random.below(300);
        const Chain chain = list.take(most);
        REQUIRE(chain.count == std::min({most, oracle.size(), ReadyList::kMostTaken}));
        for (const Fiber* fiber : drain(chain)) {
          REQUIRE(fiber == oracle.front());
          oracle.pop_front();
        }
      }
    }
    REQUIRE(list.size_hint() == oracle.size());
  }
}

TEST_CASE("fibers from plain threads leave the inject queue all at once, in order of arrival") {
  InjectQueue queue;
  std::vector<Fiber> fibers(100);
  CHECK(queue.take_all().is_empty());
  for (Fiber& fiber : fibers) queue.push(fiber);
  CHECK(!queue.empty_hint());
  const Chain chain = queue.take_all();
  CHECK(chain.count == 100);
  const std::vector<Fiber*> taken = drain(chain);
  for (std::size_t i = 0; i < 100; ++i) CHECK(taken[i] == &fibers[i]);
  CHECK(queue.empty_hint());
}

TEST_CASE(
    "an inject queue loses no fiber pushed by many threads and keeps the order of each thread's "
    "pushes") {
  weft::test::TestGuard guard("inject queue");
  constexpr std::size_t kThreads = 3;
  const std::size_t each = 30'000 / kSlowdown;
  std::vector<Fiber> fibers(kThreads * each);
  InjectQueue queue;
  std::vector<std::thread> pushers;
  for (std::size_t i = 0; i < kThreads; ++i) {
    pushers.emplace_back([&, i] {
      for (std::size_t j = 0; j < each; ++j) queue.push(fibers[i * each + j]);
    });
  }
  std::vector<std::size_t> seen(kThreads, 0);
  for (std::size_t total = 0; total < fibers.size();) {
    for (const Fiber* fiber : drain(queue.take_all())) {
      const auto number = static_cast<std::size_t>(fiber - fibers.data());
      REQUIRE(number % each == seen[number / each]++);
      ++total;
    }
  }
  for (std::thread& pusher : pushers) pusher.join();
}

TEST_SUITE_END();

}  // namespace

#include "scheduler/queues/overflow_queue.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "fibers/fiber.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

namespace {

using weft::fibers::Fiber;
using weft::scheduler::OverflowQueue;
using weft::test::kSlowdown;

// Links `length` fibers, from `first` on, into a chain.
Fiber& chain_of(Fiber* first, std::size_t length) {
  for (std::size_t i = 0; i + 1 < length; ++i) first[i].next = first + i + 1;
  first[length - 1].next = nullptr;
  return *first;
}

TEST_SUITE_BEGIN("scheduler/overflow_queue");

TEST_CASE("an empty overflow queue returns neither a newest nor an oldest fiber") {
  OverflowQueue queue;
  CHECK(queue.take_newest() == nullptr);
  CHECK(queue.take_oldest() == nullptr);
  CHECK(queue.take_oldest_fiber() == nullptr);
  CHECK(queue.size_hint() == 0);
}

TEST_CASE(
    "an overflow queue's try_push_oldest() refuses a fiber if the push would allocate memory") {
  OverflowQueue queue;
  std::vector<Fiber> fibers(2);
  CHECK_FALSE(queue.try_push_oldest(fibers[0]));
  queue.make_room();
  CHECK(queue.try_push_oldest(fibers[0]));
  CHECK(queue.try_push_oldest(fibers[1]));
  CHECK(queue.take_oldest() == &fibers[1]);
  CHECK(queue.take_oldest() == &fibers[0]);
}

TEST_CASE("single fibers are taken from the oldest chain until the chain is empty") {
  OverflowQueue queue;
  std::vector<Fiber> fibers(5);
  queue.make_room();
  queue.push_newest(chain_of(&fibers[0], 3));
  queue.make_room();
  queue.push_newest(chain_of(&fibers[3], 2));
  for (Fiber& fiber : fibers) CHECK(queue.take_oldest_fiber() == &fiber);
  CHECK(queue.take_oldest_fiber() == nullptr);
  CHECK(queue.size_hint() == 0);
}

TEST_CASE("fibers pushed one by one form chains of 128 fibers, oldest first") {
  OverflowQueue queue;
  std::vector<Fiber> fibers(300);
  for (Fiber& fiber : fibers) {
    queue.make_room();
    queue.push_newest_fiber(fiber);
  }
  CHECK(queue.size_hint() == 3);
  const auto check = [&](const Fiber* chain, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i, chain = chain->next) REQUIRE(chain == &fibers[i]);
    CHECK(chain == nullptr);
  };
  check(queue.take_newest(), 256, 300);
  check(queue.take_oldest(), 0, 128);
  check(queue.take_newest(), 128, 256);
}

TEST_CASE(
    "push_newest_fiber() extends the newest chain only if all of its fibers were pushed one at a "
    "time") {
  OverflowQueue queue;
  std::vector<Fiber> fibers(8);
  const auto push = [&](std::size_t i) {
    queue.make_room();
    queue.push_newest_fiber(fibers[i]);
  };
  push(0);
  CHECK(queue.take_oldest() == &fibers[0]);
  REQUIRE(queue.try_push_oldest(chain_of(&fibers[1], 2)));
  push(3);
  CHECK(queue.size_hint() == 2);
  queue.make_room();
  queue.push_newest(chain_of(&fibers[4], 2));
  push(6);
  CHECK(queue.take_newest() == &fibers[6]);
  push(7);
  CHECK(queue.size_hint() == 4);
}

using Oracle = std::deque<std::deque<Fiber*>>;

// Pushes a chain of some fibers after `next` at either end.
void push_chain(OverflowQueue& queue, Oracle& oracle, Fiber* fibers, std::size_t& next,
                weft::test::Random& random) {
  const std::size_t length = 1 + random.below(5);
  queue.make_room();
  Fiber& chain = chain_of(&fibers[next], length);
  const bool oldest = random.below(4) == 0;
  if (oldest) {
    REQUIRE(queue.try_push_oldest(chain));
  } else {
    queue.push_newest(chain);
  }
  auto& expected = oldest ? oracle.emplace_front() : oracle.emplace_back();
  for (std::size_t i = 0; i < length; ++i) expected.push_back(&fibers[next + i]);
  next += length;
}

// The oracle is a deque of deques.
TEST_CASE("an overflow queue returns the same fibers as a std::deque under random operations") {
  weft::test::Random random(1);
  OverflowQueue queue;
  std::vector<Fiber> fibers(100'000);
  Oracle oracle;
  std::size_t next = 0;
  const auto check_chain = [](const Fiber* chain, const std::deque<Fiber*>& expected) {
    for (const Fiber* fiber : expected) {
      REQUIRE(chain == fiber);
      chain = chain->next;
    }
    REQUIRE(chain == nullptr);
  };
  for (int step = 0; step < 20'000; ++step) {
    const bool filling = step / 500 % 2 == 0;
    switch (random.below(filling ? 4 : 7)) {
      case 0:
      case 1:
      case 2: {
        push_chain(queue, oracle, fibers.data(), next, random);
        break;
      }
      case 3: {
        Fiber* fiber = queue.take_oldest_fiber();
        REQUIRE((fiber == nullptr) == oracle.empty());
        if (fiber == nullptr) break;
        REQUIRE(fiber == oracle.front().front());
        oracle.front().pop_front();
        if (oracle.front().empty()) oracle.pop_front();
        break;
      }
      case 4: {
        const Fiber* chain = queue.take_oldest();
        REQUIRE((chain == nullptr) == oracle.empty());
        if (chain == nullptr) break;
        check_chain(chain, oracle.front());
        oracle.pop_front();
        break;
      }
      default: {
        const Fiber* chain = queue.take_newest();
        REQUIRE((chain == nullptr) == oracle.empty());
        if (chain == nullptr) break;
        check_chain(chain, oracle.back());
        oracle.pop_back();
      }
    }
    REQUIRE(queue.size_hint() == oracle.size());
  }
}

TEST_CASE(
    "no fiber is lost or duplicated between owner and thieves while the overflow queue grows") {
  weft::test::TestGuard guard("overflow queue");
  constexpr std::size_t kChain = 4;
  const std::size_t chains = 40'000 / kSlowdown;
  std::vector<Fiber> fibers(chains * kChain);
  const auto seen = std::make_unique<std::atomic<int>[]>(fibers.size());
  const auto see = [&](const Fiber* fiber) {
    seen[static_cast<std::size_t>(fiber - &fibers[0])]++;
  };
  const auto see_chain = [&](const Fiber* chain) {
    for (; chain != nullptr; chain = chain->next) see(chain);
  };
  OverflowQueue queue;
  std::atomic<bool> done{false};
  std::vector<std::thread> thieves;
  for (int i = 0; i < 3; ++i) {
    thieves.emplace_back([&] {
      while (!done.load()) {
        const Fiber* chain = queue.take_oldest();
        if (chain == nullptr) std::this_thread::yield();
        see_chain(chain);
      }
    });
  }
  weft::test::Random random(2);
  for (std::size_t i = 0; i < chains; ++i) {
    queue.make_room();
    queue.push_newest(chain_of(&fibers[i * kChain], kChain));
    if (random.one_in(4)) see_chain(queue.take_newest());
    if (random.one_in(4)) {
      if (const Fiber* fiber = queue.take_oldest_fiber()) see(fiber);
    }
  }
  while (const Fiber* chain = queue.take_newest()) see_chain(chain);
  done.store(true);
  for (std::thread& thief : thieves) thief.join();
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < fibers.size(); ++i) wrong += seen[i].load() != 1 ? 1U : 0U;
  CHECK(wrong == 0);
}

TEST_SUITE_END();

}  // namespace

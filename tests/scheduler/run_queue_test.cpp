#include "scheduler/queues/run_queue.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "fibers/fiber.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

namespace {

using weft::fibers::Fiber;
using weft::scheduler::RunQueue;
using weft::test::kSlowdown;

// Holds fibers that differ only in their addresses.
class Fibers {
 public:
  explicit Fibers(std::size_t count) : fibers_(std::make_unique<Fiber[]>(count)) {}
  Fiber& operator[](std::size_t number) { return fibers_[number]; }
  std::size_t number_of(const Fiber* fiber) const {
    return static_cast<std::size_t>(fiber - fibers_.get());
  }

 private:
  std::unique_ptr<Fiber[]> fibers_;
};

// Takes the older half out of the queue.
std::vector<Fiber*> take_half(RunQueue& queue, std::size_t most = RunQueue::kCapacity) {
  RunQueue::Batch batch;
  const std::uint32_t count = queue.take_half(batch, most);
  return {batch.begin(), batch.begin() + count};
}

TEST_SUITE_BEGIN("scheduler/run_queue");

TEST_CASE("an empty run queue returns nothing to its owner or to a thief") {
  RunQueue queue;
  CHECK(queue.pop() == nullptr);
  CHECK(take_half(queue).empty());
  CHECK(queue.size_hint() == 0);
}

TEST_CASE("a run queue returns fibers in FIFO order and refuses fibers beyond its capacity") {
  RunQueue queue;
  Fibers fibers(RunQueue::kCapacity + 1);
  for (std::size_t lap = 0; lap < 3; ++lap) {
    for (std::size_t i = 0; i < RunQueue::kCapacity; ++i) REQUIRE(queue.push(fibers[i]));
    CHECK(!queue.push(fibers[RunQueue::kCapacity]));
    CHECK(queue.size_hint() == RunQueue::kCapacity);
    for (std::size_t i = 0; i < RunQueue::kCapacity; ++i) REQUIRE(queue.pop() == &fibers[i]);
    CHECK(queue.pop() == nullptr);
  }
}

TEST_CASE("a thief takes the older half of a run queue, rounded up, in order") {
  for (std::uint32_t size = 1; size <= RunQueue::kCapacity; ++size) {
    RunQueue queue;
    Fibers fibers(size);
    for (std::uint32_t i = 0; i < size; ++i) REQUIRE(queue.push(fibers[i]));
    const std::vector<Fiber*> taken = take_half(queue);
    REQUIRE(taken.size() == size - size / 2);
    for (std::size_t i = 0; i < taken.size(); ++i) REQUIRE(taken[i] == &fibers[i]);
    REQUIRE(queue.size_hint() == size / 2);
  }
}

TEST_CASE("a thief takes no more fibers than the requested number") {
  RunQueue queue;
  Fibers fibers(100);
  for (std::size_t i = 0; i < 100; ++i) REQUIRE(queue.push(fibers[i]));
  CHECK(take_half(queue, 3) == std::vector<Fiber*>{&fibers[0], &fibers[1], &fibers[2]});
  CHECK(queue.size_hint() == 97);
}

bool is_any(const Fiber&) { return true; }

TEST_CASE("take_recent() removes the newest match, and the other fibers keep their order") {
  constexpr std::size_t kCount = 10;
  for (std::size_t wanted = 0; wanted < kCount; ++wanted) {
    RunQueue queue;
    Fibers fibers(kCount);
    for (std::size_t i = 0; i < kCount; ++i) REQUIRE(queue.push(fibers[i]));
    const auto is_wanted = [&](const Fiber& fiber) { return fibers.number_of(&fiber) <= wanted; };
    CHECK(queue.take_recent(is_wanted, is_any) == &fibers[wanted]);
    CHECK(queue.size_hint() == kCount - 1);
    for (std::size_t i = 0; i < kCount; ++i) {
      if (i != wanted) CHECK(queue.pop() == &fibers[i]);
    }
    CHECK(queue.pop() == nullptr);
  }
}

TEST_CASE("take_recent() removes no fiber that meets only one of its two predicates") {
  RunQueue queue;
  Fibers fibers(5);
  CHECK(queue.take_recent(is_any, is_any) == nullptr);
  for (std::size_t i = 0; i < 5; ++i) REQUIRE(queue.push(fibers[i]));
  const auto third = [&](const Fiber& fiber) { return &fiber == &fibers[2]; };
  const auto none = [](const Fiber&) { return false; };
  CHECK(queue.take_recent(third, none) == nullptr);
  CHECK(queue.take_recent(none, is_any) == nullptr);
  for (std::size_t i = 0; i < 5; ++i) CHECK(queue.pop() == &fibers[i]);
}

TEST_CASE("take_recent() checks only the last fibers of a long queue") {
  RunQueue queue;
  Fibers fibers(RunQueue::kCapacity);
  for (std::size_t i = 0; i < RunQueue::kCapacity; ++i) REQUIRE(queue.push(fibers[i]));
  std::size_t asked = 0;
  const auto first = [&](const Fiber& fiber) { return ++asked, &fiber == &fibers[0]; };
  CHECK(queue.take_recent(first, is_any) == nullptr);
  CHECK(asked > 0);
  CHECK(asked < RunQueue::kCapacity / 4);
  CHECK(queue.size_hint() == RunQueue::kCapacity);
}

// Takes the fiber that is `back` places from the newest out of the queue and the oracle.
void take_recent_like(RunQueue& queue, std::deque<Fiber*>& oracle, std::uint64_t back) {
  const auto is_at = [left = back](const Fiber&) mutable { return left-- == 0; };
  Fiber* fiber = queue.take_recent(is_at, is_any);
  if (back >= oracle.size()) {
    REQUIRE(fiber == nullptr);
    return;
  }
  const auto at = oracle.end() - 1 - static_cast<std::ptrdiff_t>(back);
  REQUIRE(fiber == *at);
  oracle.erase(at);
}

// The oracle is a deque. The test uses one thread, so that every step has one correct result.
TEST_CASE("a run queue returns the same fibers as a std::deque under random operations") {
  weft::test::Random random(1);
  Fibers fibers(200'000);
  RunQueue queue;
  std::deque<Fiber*> oracle;
  std::size_t next = 0;
  for (int step = 0; step < 150'000; ++step) {
    // Phases alternately fill and drain the queue, so that it is often full and often empty.
    const bool filling = step / 1000 % 2 == 0;
    switch (random.below(filling ? 4 : 6)) {
      case 0:
      case 1: {
        const bool pushed = queue.push(fibers[next]);
        REQUIRE(pushed == (oracle.size() < RunQueue::kCapacity));
        if (pushed) oracle.push_back(&fibers[next++]);
        break;
      }
      case 2: {
        if (!random.one_in(50)) break;
        const std::vector<Fiber*> taken = take_half(queue);
        REQUIRE(taken.size() == oracle.size() - oracle.size() / 2);
        REQUIRE(std::equal(taken.begin(), taken.end(), oracle.begin()));
        oracle.erase(oracle.begin(), oracle.begin() + static_cast<std::ptrdiff_t>(taken.size()));
        break;
      }
      case 3: {
        take_recent_like(queue, oracle, random.below(12));
        break;
      }
      case 4: {
        Fiber* fiber = queue.pop();
        REQUIRE(fiber == (oracle.empty() ? nullptr : oracle.front()));
        if (fiber != nullptr) oracle.pop_front();
        break;
      }
      default: {
        const std::size_t most = random.below(4);
        const std::vector<Fiber*> taken = take_half(queue, most);
        REQUIRE(taken.size() == std::min(most, oracle.size() - oracle.size() / 2));
        REQUIRE(std::equal(taken.begin(), taken.end(), oracle.begin()));
        oracle.erase(oracle.begin(), oracle.begin() + static_cast<std::ptrdiff_t>(taken.size()));
      }
    }
    REQUIRE(queue.size_hint() == oracle.size());
  }
}

// The owner pushes, pops and spills while thieves steal. Finally, every fiber was taken once.
void check_owner_against_thieves(unsigned thief_count, std::size_t fiber_count) {
  Fibers fibers(fiber_count);
  const auto seen = std::make_unique<std::atomic<int>[]>(fiber_count);
  RunQueue queue;
  std::atomic<bool> done{false};
  const auto see = [&](const Fiber* fiber) {
    seen[fibers.number_of(fiber)].fetch_add(1, std::memory_order_relaxed);
  };
  std::vector<std::thread> thieves;
  std::vector<RunQueue> own_queues(thief_count);
  for (unsigned i = 0; i < thief_count; ++i) {
    thieves.emplace_back([&, i] {
      weft::test::Random random(10 + i);
      while (!done.load(std::memory_order_acquire)) {
        // Thieves steal mostly from the owner, and sometimes from each other.
        const bool from_owner = i == 0 || random.one_in(2);
        RunQueue& victim = from_owner ? queue : own_queues[random.below(i)];
        const std::vector<Fiber*> taken = take_half(victim);
        if (taken.empty()) {
          std::this_thread::yield();
          continue;
        }
        for (Fiber* fiber : taken) REQUIRE(own_queues[i].push(*fiber));
        while (Fiber* mine = own_queues[i].pop()) see(mine);
      }
    });
  }
  weft::test::Random random(2);
  for (std::size_t next = 0; next < fiber_count;) {
    for (std::uint64_t burst = 1 + random.below(300); burst > 0 && next < fiber_count; --burst) {
      if (queue.push(fibers[next])) {
        ++next;
        continue;
      }
      const std::vector<Fiber*> taken = take_half(queue);
      std::for_each(taken.begin(), taken.end(), see);
    }
    for (std::uint64_t pops = random.below(300); pops > 0; --pops) {
      const auto chosen = [back = random.below(5)](const Fiber&) mutable { return back-- == 0; };
      const auto most = [&](const Fiber& one) { return fibers.number_of(&one) % 8 != 0; };
      if (Fiber* recent = random.one_in(2) ? queue.take_recent(chosen, most) : nullptr) see(recent);
      Fiber* fiber = queue.pop();
      if (fiber == nullptr) break;
      see(fiber);
    }
  }
  while (Fiber* fiber = queue.pop()) see(fiber);
  done.store(true, std::memory_order_release);
  for (std::thread& thief : thieves) thief.join();
  std::size_t lost = 0;
  std::size_t doubled = 0;
  for (std::size_t i = 0; i < fiber_count; ++i) {
    lost += seen[i].load() == 0 ? 1U : 0U;
    doubled += seen[i].load() > 1 ? 1U : 0U;
  }
  CHECK(lost == 0);
  CHECK(doubled == 0);
}

TEST_CASE("the owner of a run queue and its thieves together take every fiber exactly once") {
  weft::test::TestGuard guard("owner and thieves");
  for (const unsigned thieves : {1U, 2U, 5U}) {
    check_owner_against_thieves(thieves, 300'000 / kSlowdown);
  }
}

TEST_SUITE_END();

}  // namespace

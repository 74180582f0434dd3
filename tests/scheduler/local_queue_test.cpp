#include "scheduler/queues/local_queue.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "base/membarrier.hpp"
#include "fibers/stack.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"
#include "tests/support/skip.hpp"

namespace {

using weft::detail::relaxed;
using weft::fibers::Fiber;
using weft::fibers::Stack;
using weft::scheduler::LocalQueue;
using weft::scheduler::RunQueue;
using weft::test::kSlowdown;

// Holds records of fibers. The first `started` of them appear to have a stack.
class Records {
 public:
  explicit Records(std::size_t count, std::size_t started = 0) : fibers_(count), stacks_(started) {
    for (std::size_t i = 0; i < started; ++i) fibers_[i].stack.store(&stacks_[i], relaxed);
  }
  Fiber& operator[](std::size_t i) { return fibers_[i]; }
  std::size_t number_of(const Fiber* fiber) const {
    return static_cast<std::size_t>(fiber - fibers_.data());
  }
  std::size_t size() const { return fibers_.size(); }

 private:
  std::vector<Fiber> fibers_;
  std::vector<Stack> stacks_;
};

void spawn(LocalQueue& queue, Fiber& fiber) {
  queue.make_room();
  queue.push_new(fiber);
}

TEST_SUITE_BEGIN("scheduler/local_queue");

TEST_CASE("a local queue returns woken and yielding fibers in FIFO order, however many there are") {
  for (const std::size_t count : {1U, 100U, 256U, 257U, 1'000U, 20'000U}) {
    LocalQueue queue(true);
    Records records(count, count);
    for (std::size_t i = 0; i < count; ++i) queue.push_last(records[i]);
    CHECK(queue.size_hint() == count);
    // Each fiber goes to the end again, twice.
    for (std::size_t i = 0; i < 2 * count; ++i) {
      Fiber* fiber = queue.pop();
      REQUIRE(fiber == &records[i % count]);
      queue.push_last(*fiber);
    }
    for (std::size_t i = 0; i < count; ++i) REQUIRE(queue.pop() == &records[i]);
    CHECK(queue.pop() == nullptr);
    CHECK(queue.empty_hint());
  }
}

TEST_CASE("the fiber woken last runs next, but not twice in a row while other fibers are queued") {
  LocalQueue queue(true);
  Records records(4, 4);
  queue.push_last(records[0]);
  queue.push_last(records[1]);
  queue.put_next(records[2]);
  CHECK(queue.pop() == &records[2]);
  queue.put_next(records[3]);
  CHECK(queue.pop() == &records[0]);
  CHECK(queue.pop() == &records[1]);
  CHECK(queue.pop() == &records[3]);
  // Without other waiters, the same fiber may run repeatedly.
  for (int i = 0; i < 10; ++i) {
    queue.put_next(records[0]);
    CHECK(queue.pop() == &records[0]);
  }
}

TEST_CASE("a fiber goes to the end of the queue when a fiber woken later displaces it") {
  LocalQueue queue(true);
  Records records(3, 3);
  for (std::size_t i = 0; i < 3; ++i) queue.put_next(records[i]);
  CHECK(queue.pop() == &records[2]);
  CHECK(queue.pop() == &records[0]);
  CHECK(queue.pop() == &records[1]);
}

TEST_CASE(
    "reach_oldest() makes the oldest new fiber run soon when new fibers have overflowed the ring") {
  LocalQueue queue(true);
  constexpr std::size_t kCount = 2'000;
  Records records(kCount);
  for (std::size_t i = 0; i < kCount; ++i) spawn(queue, records[i]);
  // The oldest chain is at the bottom of the stack of chains.
  std::set<std::size_t> first;
  for (int i = 0; i < 500; ++i) first.insert(records.number_of(queue.pop()));
  CHECK(first.count(0) == 0);
  queue.reach_oldest();
  bool reached = false;
  for (std::size_t i = 0; i < 2 * RunQueue::kCapacity; ++i) {
    reached = reached || queue.pop() == &records[0];
  }
  CHECK(reached);
}

TEST_CASE("new fibers that do not fit into the ring do not start while started fibers are queued") {
  LocalQueue queue(true);
  constexpr std::size_t kNew = 2'000;
  constexpr std::size_t kStarted = 1'000;
  Records records(kNew + kStarted);
  for (std::size_t i = 0; i < kNew; ++i) spawn(queue, records[i]);
  for (std::size_t i = kNew; i < kNew + kStarted; ++i) queue.push_last(records[i]);
  // The ring is full of new fibers.
  std::size_t begun = 0;
  for (std::size_t gone_on = 0; gone_on < kStarted;) {
    ++(records.number_of(queue.pop()) < kNew ? begun : gone_on);
  }
  CHECK(begun <= RunQueue::kCapacity);
  while (queue.pop() != nullptr) ++begun;
  CHECK(begun == kNew);
}

TEST_CASE("reach_oldest() moves only a few new fibers into the ring at a time") {
  LocalQueue queue(true);
  Records records(50'000);
  for (std::size_t i = 0; i < records.size(); ++i) spawn(queue, records[i]);
  while (queue.ring_size_hint() > 0) (void)queue.pop();
  for (int look = 0; look < 100; ++look) {
    queue.reach_oldest();
    CHECK(queue.ring_size_hint() <= 8);
    while (queue.ring_size_hint() > 0) REQUIRE(records.number_of(queue.pop()) < 800);
  }
}

TEST_CASE("new fibers run after the started fibers in the queue, in FIFO order") {
  LocalQueue queue(true);
  constexpr std::size_t kStarted = RunQueue::kCapacity + 100;
  Records records(kStarted + 100, kStarted);
  for (std::size_t i = 0; i < kStarted; ++i) queue.push_last(records[i]);
  for (std::size_t i = kStarted; i < records.size(); ++i) spawn(queue, records[i]);
  for (std::size_t i = 0; i < records.size(); ++i) REQUIRE(queue.pop() == &records[i]);
}

TEST_CASE("a stolen chain of new fibers runs after the fibers already queued") {
  constexpr std::size_t kCount = 2'000;
  LocalQueue victim(true);
  LocalQueue queue(true);
  Records records(2 * kCount);
  for (std::size_t i = 0; i < kCount; ++i) spawn(queue, records[i]);
  for (std::size_t i = kCount; i < 2 * kCount; ++i) spawn(victim, records[i]);
  CHECK(queue.steal_chain(victim) == RunQueue::kCapacity / 2);
  for (std::size_t i = 0; i < kCount; ++i) {
    Fiber* fiber = queue.pop();
    REQUIRE(fiber != nullptr);
    const bool is_stolen = records.number_of(fiber) >= kCount;
    if (is_stolen) CHECK(i >= kCount - RunQueue::kCapacity);
  }
  std::size_t left = 0;
  while (queue.pop() != nullptr) ++left;
  while (victim.pop() != nullptr) ++left;
  CHECK(left == kCount);
}

TEST_CASE("a thief with an empty queue runs the new fibers of a stolen chain") {
  constexpr std::size_t kCount = 400;
  LocalQueue victim(true);
  Records records(kCount);
  for (std::size_t i = 0; i < kCount; ++i) spawn(victim, records[i]);
  LocalQueue queue(true);
  CHECK(queue.steal_chain(victim) != 0);
  CHECK(queue.pop() == &records[0]);
  std::size_t left = 0;
  while (queue.pop() != nullptr) ++left;
  while (victim.pop() != nullptr) ++left;
  CHECK(left == kCount - 1);
}

// A fiber that is woken or yields among n fibers waits for at most 2 n + 64 runs of others, though
// each of them spawns another fiber whenever it runs.
TEST_CASE("a started fiber waits at most about twice as long when the other fibers keep spawning") {
  for (const std::size_t count : {100U, 300U, 1'000U, 5'000U}) {
    LocalQueue queue(true);
    Records records(count + 20 * count, count);
    for (std::size_t i = 0; i < count; ++i) queue.push_last(records[i]);
    std::vector<std::size_t> last_run(count, 0);
    std::size_t next_new = count;
    std::size_t longest = 0;
    for (std::size_t run = 1; run < 12 * count; ++run) {
      Fiber* fiber = queue.pop();
      REQUIRE(fiber != nullptr);
      const std::size_t number = records.number_of(fiber);
      if (number >= count) continue;  // The fiber ends.
      longest = std::max(longest, run - last_run[number]);
      last_run[number] = run;
      if (next_new < records.size()) spawn(queue, records[next_new++]);
      queue.push_last(*fiber);
    }
    for (const std::size_t run : last_run) longest = std::max(longest, 12 * count - run);
    CHECK(longest <= 2 * count + 64);
  }
}

TEST_CASE("a thief takes the fibers that became ready first, from the ring and the waiting list") {
  LocalQueue victim(true);
  LocalQueue thief(true);
  constexpr std::size_t kCount = 1'000;
  Records records(kCount, kCount);
  for (std::size_t i = 0; i < kCount; ++i) victim.push_last(records[i]);
  CHECK(thief.steal_oldest(victim, 50) == 50);
  for (std::size_t i = 0; i < 50; ++i) CHECK(thief.pop() == &records[RunQueue::kCapacity + i]);
  CHECK(thief.steal_ring(victim) == RunQueue::kCapacity / 2);
  for (std::size_t i = 0; i < RunQueue::kCapacity / 2; ++i) CHECK(thief.pop() == &records[i]);
  CHECK(thief.steal_next(victim) == 0);
  victim.put_next(records[0]);
  CHECK(thief.steal_next(victim) == 1);
  CHECK(thief.pop() == &records[0]);
}

TEST_CASE("a thief takes half of the fibers in a worker's overflow queue, rounded up") {
  LocalQueue victim(true);
  LocalQueue thief(true);
  Records records(RunQueue::kCapacity + 4, RunQueue::kCapacity + 4);
  for (std::size_t i = 0; i < records.size(); ++i) victim.push_last(records[i]);
  for (const std::size_t share : {2U, 1U, 1U, 0U})
    CHECK(thief.steal_overflow(victim, false) == share);
  for (std::size_t i = 0; i < 4; ++i) CHECK(thief.pop() == &records[RunQueue::kCapacity + i]);
  CHECK(thief.pop() == nullptr);
}

TEST_CASE("a local queue counts how many times new fibers did not fit into the ring") {
  LocalQueue queue(true);
  Records records(2 * RunQueue::kCapacity);
  for (std::size_t i = 0; i < RunQueue::kCapacity; ++i) spawn(queue, records[i]);
  CHECK(queue.spills() == 0);
  for (std::size_t i = RunQueue::kCapacity; i < records.size(); ++i) spawn(queue, records[i]);
  CHECK(queue.spills() == 2);  // The queue spills half of its fibers each time.
}

TEST_CASE("stolen fibers that became ready earlier run before the thief's own fibers") {
  LocalQueue victim(true);
  LocalQueue queue(true);
  constexpr std::size_t kCount = 1'000;
  constexpr std::size_t kStolen = 300;
  Records records(2 * kCount, 2 * kCount);
  queue.set_time(2 * Fiber::kTick);
  for (std::size_t i = 0; i < kCount; ++i) queue.push_last(records[i]);
  victim.set_time(Fiber::kTick);
  for (std::size_t i = kCount; i < 2 * kCount; ++i) victim.push_last(records[i]);
  CHECK(queue.steal_oldest(victim, kStolen) == kStolen);
  for (std::size_t i = 0; i < RunQueue::kCapacity; ++i) REQUIRE(queue.pop() == &records[i]);
  for (std::size_t i = 0; i < kStolen; ++i) {
    REQUIRE(queue.pop() == &records[kCount + RunQueue::kCapacity + i]);
  }
  for (std::size_t i = RunQueue::kCapacity; i < kCount; ++i) REQUIRE(queue.pop() == &records[i]);
  CHECK(queue.pop() == nullptr);
}

TEST_CASE("waits_longer_than() compares the oldest fibers of two overflow queues") {
  LocalQueue one(true);
  LocalQueue other(true);
  constexpr std::size_t kCount = RunQueue::kCapacity + 1;
  Records records(2 * kCount, 2 * kCount);
  one.set_time(2 * Fiber::kTick);
  for (std::size_t i = 0; i < kCount; ++i) one.push_last(records[i]);
  other.set_time(Fiber::kTick);
  for (std::size_t i = kCount; i + 1 < 2 * kCount; ++i) other.push_last(records[i]);
  // The fibers in the ring run soon, and are as old as possible.
  CHECK(!one.waits_longer_than(other));
  other.push_last(records[2 * kCount - 1]);
  CHECK(!one.waits_longer_than(other));
  CHECK(other.waits_longer_than(one));
  CHECK(!one.waits_longer_than(one));
  CHECK(other.steal_oldest(one, 1) == 1);
  CHECK(!other.waits_longer_than(one));
}

// Alternately, 100 fibers become ready in one queue, then 100 in the other.
TEST_CASE("stolen fibers are sorted by age into the thief's overflow queue") {
  LocalQueue victim(true);
  LocalQueue queue(true);
  constexpr std::size_t kTogether = 100;
  constexpr std::size_t kCount = 2'000;
  constexpr std::size_t kInRings = 2 * RunQueue::kCapacity;
  Records records(kInRings + kCount, kInRings + kCount);
  for (std::size_t i = 0; i < kInRings; ++i) (i % 2 == 0 ? queue : victim).push_last(records[i]);
  for (std::size_t i = 0; i < kCount; ++i) {
    LocalQueue& one = i / kTogether % 2 == 0 ? queue : victim;
    one.set_time((static_cast<std::int64_t>(i / kTogether) + 1) * Fiber::kTick);
    one.push_last(records[kInRings + i]);
  }
  // Takes fibers in parts, as a worker that relieves another worker does.
  for (std::size_t taken = 0; taken < kCount / 2; taken += 125) {
    REQUIRE(queue.steal_oldest(victim, 125) == 125);
  }
  for (std::size_t i = 0; i < RunQueue::kCapacity; ++i) REQUIRE(queue.pop() == &records[2 * i]);
  for (std::size_t i = 0; i < kCount; ++i) {
    REQUIRE(records.number_of(queue.pop()) == kInRings + i);
  }
  CHECK(queue.pop() == nullptr);
}

TEST_CASE("fibers stolen from a ring run before the fibers in the thief's own overflow queue") {
  LocalQueue victim(true);
  LocalQueue queue(true);
  constexpr std::size_t kCount = 1'000;
  constexpr std::size_t kStolen = 50;
  Records records(kCount + kStolen, kCount + kStolen);
  for (std::size_t i = kCount; i < kCount + kStolen; ++i) victim.push_last(records[i]);
  queue.set_time(Fiber::kTick);
  for (std::size_t i = 0; i < kCount; ++i) queue.push_last(records[i]);
  CHECK(queue.steal_ring(victim, kStolen / 2) == kStolen / 2);
  for (std::size_t i = 0; i < RunQueue::kCapacity; ++i) REQUIRE(queue.pop() == &records[i]);
  for (std::size_t i = 0; i < kStolen / 2; ++i) REQUIRE(queue.pop() == &records[kCount + i]);
  CHECK(queue.pop() == &records[RunQueue::kCapacity]);
}

TEST_CASE("fibers stolen from a ring alternate with the thief's own fibers in the ring") {
  LocalQueue victim(true);
  LocalQueue queue(true);
  constexpr std::size_t kCount = 50;
  Records records(2 * kCount, 2 * kCount);
  for (std::size_t i = 0; i < kCount; ++i) queue.push_last(records[i]);
  for (std::size_t i = kCount; i < 2 * kCount; ++i) victim.push_last(records[i]);
  CHECK(queue.steal_ring(victim) == kCount / 2);
  for (std::size_t i = 0; i < kCount / 2; ++i) {
    REQUIRE(queue.pop() == &records[kCount + i]);
    REQUIRE(queue.pop() == &records[i]);
  }
  for (std::size_t i = kCount / 2; i < kCount; ++i) REQUIRE(queue.pop() == &records[i]);
  CHECK(queue.pop() == nullptr);
}

TEST_CASE("take_all() takes all fibers of a local queue at once") {
  LocalQueue queue(true);
  Records records(3'000, 1'000);
  for (std::size_t i = 0; i < 1'000; ++i) queue.push_last(records[i]);
  for (std::size_t i = 1'000; i < 3'000; ++i) spawn(queue, records[i]);
  std::set<const Fiber*> taken;
  for (auto chain = queue.take_all(); const Fiber* fiber = chain.take_first();) taken.insert(fiber);
  CHECK(taken.size() == 3'000);
  CHECK(queue.empty_hint());
}

// The owner uses plain stores until another thread opens the queue.
TEST_CASE("a local queue that is opened to thieves while its owner is using it loses no fiber") {
  if (!weft::base::prepare_barriers()) {
    return weft::test::skip("the system has no membarrier, so such queues are open from the start");
  }
  weft::test::TestGuard guard("local queue");
  for (unsigned round = 0; round < 200 / kSlowdown; ++round) {
    constexpr std::size_t kCount = 3'000;
    Records records(kCount, kCount);
    const auto seen = std::make_unique<std::atomic<int>[]>(kCount);
    const auto see = [&](const Fiber* fiber) { seen[records.number_of(fiber)].fetch_add(1); };
    LocalQueue queue(false);
    LocalQueue mine(true);
    std::atomic<bool> done{false};
    std::thread thief([&] {
      while (!done.load()) {
        if (!queue.try_open()) continue;
        (void)mine.steal_ring(queue);
        (void)mine.steal_next(queue);
        while (const Fiber* fiber = mine.pop()) see(fiber);
      }
    });
    weft::test::Random random(round);
    for (std::size_t next = 0; next < kCount;) {
      for (std::uint64_t i = random.below(40); i > 0 && next < kCount; --i) {
        if (random.one_in(3)) {
          queue.put_next(records[next++]);
        } else {
          queue.push_last(records[next++]);
        }
      }
      for (std::uint64_t i = random.below(40); i > 0; --i) {
        if (const Fiber* fiber = queue.pop()) see(fiber);
      }
    }
    while (const Fiber* fiber = queue.pop()) see(fiber);
    done.store(true);
    thief.join();
    while (const Fiber* fiber = queue.pop()) see(fiber);
    while (const Fiber* fiber = mine.pop()) see(fiber);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < kCount; ++i) wrong += seen[i].load() != 1 ? 1U : 0U;
    CHECK(wrong == 0);
  }
}

TEST_SUITE_END();

}  // namespace

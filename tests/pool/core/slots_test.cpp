// Tests the arithmetic of a pool's capacity.
#include "pool/core/slots.hpp"

#include <cstdint>
#include <vector>

#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

namespace {

using weft::kUnlimited;
using weft::pool::Slots;
using weft::test::Random;

TEST_SUITE_BEGIN("pool/slots");

TEST_CASE("Slots accepts and queues tasks of all weights up to the capacity and the queue size") {
  Slots slots(2, 3);
  for (int i = 0; i < 5; ++i) {
    CHECK(slots.has_room());
    slots.accept(1);
  }
  CHECK(!slots.has_room());
  CHECK(slots.available() == 0);
  slots.drop(2);
  CHECK(slots.has_room(2, 0));
  CHECK(!slots.has_room(3, 0));
}

TEST_CASE("a task heavier than a reduced capacity runs alone") {
  Slots slots(4, 0);
  slots.accept(4);
  slots.resize(2);
  CHECK(slots.can_start(4));
  slots.start(4);
  CHECK(!slots.has_room());
  slots.end(4);
  CHECK(slots.load() == 0);
  CHECK(slots.has_room(4, 0));
}

TEST_CASE(
    "a task whose weight exceeds the reduced capacity may start while other tasks wait for a key") {
  Slots slots(4, 3);
  slots.accept(3);
  slots.resize(2);
  CHECK(!slots.has_room(3, 2));
  CHECK(slots.has_room(3, 3));
}

TEST_CASE("the sum of the largest weights does not overflow") {
  Slots slots(kUnlimited, kUnlimited);
  slots.accept(SIZE_MAX / 2 + 1);
  slots.start(SIZE_MAX / 2 + 1);
  CHECK(!slots.has_room(SIZE_MAX / 2 + 1, 0));
  CHECK(!slots.can_start(SIZE_MAX / 2 + 1));
  CHECK(slots.has_room(1, 0));
}

TEST_CASE("a task that waits for its key takes room in the queue, but no slot") {
  const Slots slots(8, 2);
  CHECK(slots.has_place_behind_key(0, 2));
  CHECK(!slots.has_place_behind_key(1, 2));
  CHECK(slots.has_place_behind_key(1, 1));
  CHECK(!Slots(8, 0).has_place_behind_key(0, 1));
}

TEST_CASE("no task starts in slots that a heavy task gave back during a wait and now needs again") {
  Slots slots(3, 1);
  slots.accept(3);
  slots.start(3);
  slots.release(3);
  CHECK(slots.available() == 3);
  CHECK(slots.released() == 1);
  slots.accept(1);
  slots.start(1);
  CHECK(!slots.can_reacquire(3));
  slots.reserve(3);
  CHECK(!slots.can_start(1));
  CHECK(!slots.has_room());
  slots.end(1);
  CHECK(slots.can_reacquire(3));
  slots.unreserve(3);
  slots.reacquire(3);
  CHECK(slots.used() == 3);
  CHECK(slots.released() == 0);
}

TEST_CASE("a task starts when the free slots equal its weight") {
  Slots slots(4, 4);
  slots.accept(4);
  slots.start(2);
  CHECK(slots.can_start(2));
  CHECK(!slots.can_start(3));
  CHECK(slots.can_reacquire(2));
  CHECK(!slots.can_reacquire(3));
}

TEST_CASE("a task whose wait has ended does not regain a slot that is reserved for a queued task") {
  Slots slots(2, 1);
  slots.accept(3);
  slots.start(1);
  slots.start(1);
  slots.release(1);
  slots.accept(1);
  CHECK(slots.used() == 1);
  CHECK(!slots.can_reacquire(1));
  slots.end(1);
  CHECK(slots.can_reacquire(1));
}

TEST_CASE("the total weight of running tasks stays within the capacity under random operations") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    const std::size_t capacity = 1 + random.below(6);
    const std::size_t queue = random.below(5);
    Slots slots(capacity, queue);
    std::vector<std::size_t> queued, running, released;
    const auto sum = [](const std::vector<std::size_t>& weights) {
      std::size_t total = 0;
      for (const std::size_t weight : weights) total += weight;
      return total;
    };
    const auto take = [&](std::vector<std::size_t>& from) {
      const auto it = from.begin() + static_cast<std::ptrdiff_t>(random.below(from.size()));
      const std::size_t weight = *it;
      from.erase(it);
      return weight;
    };
    for (int step = 0; step < 300; ++step) {
      const std::size_t weight = 1 + random.below(capacity);
      if (random.one_in(2) && slots.has_room(weight, 0)) {
        slots.accept(weight);
        queued.push_back(weight);
      }
      if (!queued.empty() && slots.can_start(queued.front()) && slots.used() < capacity) {
        slots.start(queued.front());
        running.push_back(queued.front());
        queued.erase(queued.begin());
      }
      if (!running.empty() && random.one_in(3)) slots.end(take(running));
      if (!running.empty() && random.one_in(5)) {
        released.push_back(take(running));
        slots.release(released.back());
      }
      if (!released.empty() && slots.can_reacquire(released.front())) {
        slots.reacquire(released.front());
        running.push_back(released.front());
        released.erase(released.begin());
      }
      CHECK(slots.used() == sum(running));
      CHECK(slots.load() == sum(running) + sum(queued));
      CHECK(slots.used() <= capacity);
      CHECK(slots.released() == released.size());
    }
  }
}

TEST_SUITE_END();

}  // namespace

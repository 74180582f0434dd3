#include "pool/queue/segment_queue.hpp"

#include <deque>
#include <utility>

#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

using namespace weft;
using namespace weft::test;
using detail::PoolItem;
using pool::SegmentQueue;

namespace {

PoolItem item(int number, int& last_run) {
  return PoolItem(std::in_place, [number, &last_run] { last_run = number; });
}

void grow(SegmentQueue& queue) {
  const auto spare = queue.add(SegmentQueue::make_segment(queue.next_segment_size()));
}

int pop_number(SegmentQueue& queue, int& last_run) {
  PoolItem popped;
  queue.pop(popped);
  popped.task.run();
  return last_run;
}

}  // namespace

TEST_SUITE_BEGIN("pool/segment_queue");

TEST_CASE("a segment queue returns items in FIFO order, however the queue grows") {
  Random random;
  SegmentQueue queue;
  std::deque<int> oracle;
  int last_run = 0;
  int next = 0;
  for (int step = 0; step < 200'000; ++step) {
    // The phases are long, so that the queue both fills several rings and becomes empty.
    const bool push = random.below(100) < (step / 3000 % 2 == 0 ? 60u : 40u);
    if (push) {
      if (!queue.has_room() || random.one_in(500)) grow(queue);
      if (!queue.has_room()) continue;
      queue.push(item(next, last_run));
      oracle.push_back(next++);
    } else if (!oracle.empty()) {
      REQUIRE(pop_number(queue, last_run) == oracle.front());
      oracle.pop_front();
    }
    if (random.one_in(1000)) const auto unused = queue.trim();
    REQUIRE(queue.size() == oracle.size());
  }
}

TEST_CASE(
    "each pop of a segment queue makes room for one push while each_pop_makes_room() returns "
    "true") {
  Random random;
  SegmentQueue queue;
  int last_run = 0;
  for (int round = 0; round < 300; ++round) {
    const std::size_t pushes = random.below(200);
    for (std::size_t i = 0; i < pushes; ++i) {
      if (!queue.has_room()) grow(queue);
      queue.push(item(0, last_run));
    }
    if (!queue.each_pop_makes_room()) continue;
    const std::size_t exchanges = queue.empty() ? 0 : random.below(400);
    for (std::size_t i = 0; i < exchanges; ++i) {
      (void)pop_number(queue, last_run);
      REQUIRE(queue.has_room());
      queue.push(item(0, last_run));
    }
    const std::size_t pops = random.below(queue.size() + 1);
    for (std::size_t i = 0; i < pops; ++i) (void)pop_number(queue, last_run);
  }
}

TEST_CASE("a destroyed segment queue destroys its remaining items without running them") {
  int destroyed = 0;
  bool ran = false;
  struct Counter {
    explicit Counter(int& total) : count(&total) {}
    Counter(Counter&& other) noexcept : count(std::exchange(other.count, nullptr)) {}
    ~Counter() {
      if (count != nullptr) ++*count;
    }
    int* count;
  };
  {
    SegmentQueue queue;
    for (int i = 0; i < 100; ++i) {
      if (!queue.has_room()) grow(queue);
      queue.push(PoolItem(std::in_place, [counter = Counter(destroyed), &ran] { ran = true; }));
    }
    CHECK(destroyed == 0);
  }
  CHECK(destroyed == 100);
  CHECK(!ran);
}

TEST_CASE("a trim of an empty segment queue frees the memory that the queue has added") {
  SegmentQueue queue;
  int last_run = 0;
  for (int i = 0; i < 5000; ++i) {
    if (!queue.has_room()) grow(queue);
    queue.push(item(i, last_run));
  }
  for (int i = 0; i < 5000; ++i) (void)pop_number(queue, last_run);
  const std::size_t grown = queue.next_segment_size();
  const auto unused = queue.trim();
  CHECK(unused != nullptr);
  CHECK(queue.next_segment_size() < grown);
  grow(queue);
  queue.push(item(7, last_run));
  CHECK(pop_number(queue, last_run) == 7);
}

TEST_CASE("a segment queue keeps its preallocated memory in one segment, even after a trim") {
  SegmentQueue queue;
  queue.begin_with(5000);
  for (int round = 0; round < 2; ++round) {
    CHECK_FALSE(queue.has_room());
    const auto superfluous = queue.add(SegmentQueue::make_segment(queue.next_segment_size()));
    CHECK(superfluous == nullptr);
    for (int i = 0; i < 5000; ++i) {
      CHECK(queue.has_room());
      queue.push(detail::PoolItem(std::in_place, [] {}));
    }
    CHECK(queue.each_pop_makes_room());
    for (int i = 0; i < 5000; ++i) {
      detail::PoolItem item;
      queue.pop(item);
    }
    CHECK(queue.trim() == nullptr);
    CHECK(queue.has_room());
    SegmentQueue other;
    other.swap(queue);
  }
}

TEST_SUITE_END();

#include "scheduler/queues/pinned_queue.hpp"

#include <doctest/doctest.h>

#include <array>

#include "fibers/fiber.hpp"

namespace {

using weft::fibers::Fiber;
using weft::scheduler::PinnedQueue;

TEST_SUITE_BEGIN("scheduler/pinned_queue");

TEST_CASE("pinned fibers are taken in the order in which they were pushed") {
  std::array<Fiber, 3> fibers;
  PinnedQueue queue;
  CHECK(queue.empty_hint());
  queue.push(fibers[0]);
  queue.push(fibers[1]);
  CHECK(!queue.empty_hint());
  CHECK(queue.take() == &fibers[0]);
  queue.push(fibers[2]);
  CHECK(queue.take() == &fibers[1]);
  CHECK(queue.take() == &fibers[2]);
  CHECK(queue.empty_hint());
  CHECK(queue.take() == nullptr);
}

TEST_CASE("a worker takes pinned and other fibers alternately while both kinds are queued") {
  std::array<Fiber, 2> pinned;
  std::array<Fiber, 4> others;
  PinnedQueue queue;
  for (Fiber& fiber : pinned) queue.push(fiber);
  std::size_t next = 0;
  const auto pop = [&] { return next < others.size() ? &others[next++] : nullptr; };
  CHECK(queue.take_or(pop) == &pinned[0]);
  CHECK(queue.take_or(pop) == &others[0]);
  CHECK(queue.take_or(pop) == &pinned[1]);
  CHECK(queue.take_or(pop) == &others[1]);
  CHECK(queue.take_or(pop) == &others[2]);
  CHECK(queue.take_or(pop) == &others[3]);
  CHECK(queue.take_or(pop) == nullptr);
  queue.push(pinned[0]);
  CHECK(queue.take_or(pop) == &pinned[0]);
}

TEST_CASE(
    "a pinned queue reports that its worker must stay while any fiber is pinned to that worker") {
  PinnedQueue queue;
  CHECK(!queue.keeps_worker());
  queue.pin();
  queue.pin();
  queue.unpin();
  CHECK(queue.keeps_worker());
  queue.unpin();
  CHECK(!queue.keeps_worker());
}

TEST_SUITE_END();

}  // namespace

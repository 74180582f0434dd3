// Regression test: a fiber that only yielded kept the fibers in a worker's overflow list waiting
// forever.
#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/fiber_test.hpp"

TEST_SUITE("scheduler/yield_and_overflow") {
  FIBER_TEST_CASE(
      "a fiber yields until all others have run, and then continues, regardless of the number of "
      "fibers") {
    // Tests several numbers, because the fault appeared only when two counters were in step.
    for (const std::size_t count : {1000UL, 1001UL, 1007UL, 3001UL, 10'000UL}) {
      std::atomic<std::size_t> entered{0};
      weft::WaitGroup group;
      group.add(count);
      for (std::size_t i = 0; i < count; ++i) {
        weft::go([&] {
          entered.fetch_add(1, std::memory_order_relaxed);
          group.done();
        });
      }
      while (entered.load() < count) weft::this_fiber::yield();
      group.wait();
      CHECK(entered.load() == count);
    }
  }
}

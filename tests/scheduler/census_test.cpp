#include "scheduler/upkeep/census.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>
#include <weft/detail/waist.hpp>

#include "fibers/fiber_store.hpp"
#include "scheduler/record/fiber_states.hpp"

namespace {

using namespace std::chrono_literals;
using weft::detail::WaitReason;
using weft::fibers::Fiber;
using weft::fibers::FiberCache;
using weft::fibers::FiberStore;
using weft::fibers::Slab;
using weft::scheduler::Census;
using weft::scheduler::parked_time;

// Returns a moment of the clock, which has run for a while.
std::int64_t at(std::chrono::nanoseconds since_start) { return (1h + since_start).count(); }

TEST_SUITE_BEGIN("scheduler/census");

TEST_CASE("a parked fiber's wait is measured from the first scan that found the fiber parked") {
  FiberStore store(nullptr, 1'000);
  FiberCache cache(store);
  Fiber& fiber = *cache.take();
  Census census(store);
  census.step(at(0s));
  weft::scheduler::become_parked(fiber, WaitReason::mutex);
  CHECK(parked_time(fiber, at(5s)) == 0s);
  census.step(at(5s));  // No step is due.
  CHECK(parked_time(fiber, at(9s)) == 0s);
  census.step(at(10s));
  census.step(at(20s));
  CHECK(parked_time(fiber, at(30s)) == 20s);
  CHECK(parked_time(fiber, at(30h)) == 30h - 10s);
  CHECK(fiber.reason() == static_cast<std::uint8_t>(WaitReason::mutex));
}

TEST_CASE(
    "a fiber's parked time is zero after it has run, until the next scan finds the fiber parked") {
  FiberStore store(nullptr, 1'000);
  FiberCache cache(store);
  Fiber& fiber = *cache.take();
  weft::scheduler::become_parked(fiber, WaitReason::join);
  Census census(store);
  census.step(at(0s));
  CHECK(parked_time(fiber, at(1s)) == 1s);
  weft::scheduler::become_running(fiber);
  CHECK(parked_time(fiber, at(1s)) == 0s);
  weft::scheduler::become_parked(fiber, WaitReason::join);
  CHECK(parked_time(fiber, at(1s)) == 0s);
  census.step(at(10s));
  CHECK(parked_time(fiber, at(12s)) == 2s);
}

TEST_CASE(
    "each step of a scan visits only some fiber records, and a complete scan visits all of them") {
  FiberStore store(nullptr, 100'000);
  FiberCache cache(store);
  std::vector<Fiber*> fibers;
  for (std::size_t i = 0; i < 40 * Slab::kFibers; ++i) {
    fibers.push_back(cache.take());
    weft::scheduler::become_parked(*fibers.back(), WaitReason::event);
  }
  Census census(store);
  CHECK_FALSE(census.covers(at(0s), at(0s)));
  const auto seen = [&] {
    return std::ranges::count_if(
        fibers, [](const Fiber* fiber) { return parked_time(*fiber, at(1s)) == 1s; });
  };
  CHECK(seen() > 0);
  CHECK(seen() < std::ptrdiff_t{40 * Slab::kFibers});
  int steps = 1;
  while (!census.covers(at(0s), at(0s))) ++steps;
  CHECK(steps < 5);
  CHECK(seen() == std::ptrdiff_t{40 * Slab::kFibers});
}

TEST_SUITE_END();

}  // namespace

#include <weft/latch.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "tests/support/fiber_test.hpp"
#include "tests/sync/callers.hpp"

namespace {

using namespace std::chrono_literals;
using weft::Latch;
using weft::test::await_parked;
using weft::test::kSlowdown;
using weft::test::run_mixed;

TEST_SUITE_BEGIN("sync/latch");

THREAD_TEST_CASE("a wait for a latch with an initial count of 0 returns at once") {
  Latch latch(0);
  CHECK(latch.try_wait());
  latch.wait();
  CHECK(latch.wait_until(weft::Deadline::past()));
  weft::spawn([&] { latch.wait(); }).join();
  latch.count_down(0);
  latch.arrive_and_wait(0);
  CHECK(latch.try_wait());
}

THREAD_TEST_CASE(
    "a latch opens at the last count_down(), and its waiters then see all earlier writes") {
  constexpr std::size_t kCount = 20;
  Latch latch(kCount);
  std::vector<int> results(kCount, 0);
  std::vector<weft::JoinHandle<void>> fibers;
  for (std::size_t i = 0; i + 1 < kCount; ++i) {
    fibers.push_back(weft::spawn([&, i] {
      results[i] = 1;
      latch.count_down();
    }));
  }
  for (auto& fiber : fibers) fiber.join();
  CHECK(!latch.try_wait());
  CHECK(!latch.wait_for(10us));
  std::atomic<int> through{0};
  auto last = weft::spawn([&] {
    await_parked(runtime, "latch", 5);
    CHECK(through.load() == 0);
    results[kCount - 1] = 1;
    latch.count_down();
  });
  run_mixed(5, 2, [&](int) {
    latch.wait();
    for (const int result : results) CHECK(result == 1);
    through.fetch_add(1);
  });
  CHECK(through.load() == 7);
  CHECK(latch.try_wait());
}

THREAD_TEST_CASE("arrive_and_wait() returns once all callers have arrived") {
  Latch latch(2 * 6);
  std::atomic<int> arrived{0};
  run_mixed(4, 2, [&](int) {
    arrived.fetch_add(1);
    latch.arrive_and_wait(2);
    CHECK(arrived.load() == 6);
  });
}

THREAD_TEST_CASE("a timed wait for a latch gives up at its deadline, and the latch stays usable") {
  Latch latch(2);
  const auto attempt = [&] {
    for (const auto span : {0us, 1us, 300us}) {
      const auto deadline = weft::Deadline::after(span);
      CHECK(!latch.wait_until(deadline));
      CHECK(deadline.passed());
    }
  };
  attempt();
  weft::spawn(attempt).join();
  auto waiting = weft::spawn([&] { return latch.wait_for(1h); });
  latch.count_down(2);
  CHECK(waiting.join());
  CHECK(latch.wait_for(0ns));
}

THREAD_TEST_CASE("a latch may be destroyed as soon as every wait for the latch has returned") {
  const int rounds = 2'000 / static_cast<int>(kSlowdown);
  const auto use_and_destroy = [&] {
    for (int round = 0; round < rounds; ++round) {
      auto latch = std::make_unique<Latch>(3);
      weft::go([&latch = *latch] { latch.count_down(); });
      weft::go([&latch = *latch] { latch.count_down(); });
      if (round % 3 == 0) {
        latch->arrive_and_wait();
      } else {
        latch->count_down();
        while (!latch->wait_for(std::chrono::microseconds(round % 3 - 1))) {
        }
      }
      latch.reset();
    }
  };
  weft::spawn(use_and_destroy).join();
  use_and_destroy();
}

TEST_SUITE_END();

}  // namespace

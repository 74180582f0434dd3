#include <weft/semaphore.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

namespace {

using namespace std::chrono_literals;
using weft::Semaphore;
using weft::test::kSlowdown;

TEST_SUITE_BEGIN("sync/semaphore");

THREAD_TEST_CASE("permits are taken while there are any") {
  Semaphore semaphore(3);
  CHECK(semaphore.try_acquire());
  CHECK(semaphore.try_acquire(2));
  CHECK(!semaphore.try_acquire());
  CHECK(semaphore.available_hint() == 0);
  semaphore.release(2);
  CHECK(!semaphore.try_acquire(3));
  CHECK(semaphore.available_hint() == 2);
  semaphore.acquire(2);
  const auto deadline = weft::Deadline::after(200us);
  CHECK(!semaphore.try_acquire_until(deadline));
  CHECK(deadline.passed());
}

THREAD_TEST_CASE("never more are inside than there are permits") {
  Semaphore semaphore(3);
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  const int rounds = 1'000 / static_cast<int>(kSlowdown);
  const auto enter = [&](std::uint64_t number) {
    weft::test::Random random(number);
    for (int i = 0; i < rounds; ++i) {
      const auto weight = static_cast<std::uint32_t>(1 + random.below(3));
      if (random.one_in(2)) {
        const std::chrono::microseconds span(random.below(3));
        if (!semaphore.try_acquire_for(span, weight)) continue;
      } else {
        semaphore.acquire(weight);
      }
      const int now = inside.fetch_add(static_cast<int>(weight)) + static_cast<int>(weight);
      if (now > 3) FAIL_CHECK(now, " are inside");
      if (now > most.load()) most.store(now);
      if (random.one_in(4)) weft::this_fiber::yield();
      inside.fetch_sub(static_cast<int>(weight));
      semaphore.release(weight);
    }
  };
  std::vector<weft::JoinHandle<void>> fibers;
  for (std::uint64_t i = 0; i < 8; ++i) fibers.push_back(weft::spawn([&, i] { enter(i); }));
  std::thread first([&] { enter(100); });
  std::thread second([&] { enter(101); });
  first.join();
  second.join();
  for (auto& fiber : fibers) fiber.join();
  CHECK(semaphore.available_hint() == 3);
}

FIBER_TEST_CASE_WITH("waiters are served first come, first served", {.workers = {1}}) {
  Semaphore semaphore(0);
  std::vector<int> order;
  std::vector<weft::JoinHandle<void>> fibers;
  for (int i = 0; i < 10; ++i) {
    fibers.push_back(weft::spawn([&, i] {
      semaphore.acquire();
      order.push_back(i);
    }));
    weft::this_fiber::yield();
  }
  for (int i = 0; i < 10; ++i) {
    semaphore.release();
    for (int turn = 0; turn < 3; ++turn) weft::this_fiber::yield();
  }
  for (auto& fiber : fibers) fiber.join();
  CHECK(order == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
}

FIBER_TEST_CASE_WITH("a big demand is not overtaken by small ones", {.workers = {1}}) {
  Semaphore semaphore(2);
  std::vector<int> order;
  auto big = weft::spawn([&] {
    semaphore.acquire(5);
    order.push_back(5);
  });
  weft::this_fiber::yield();
  auto small = weft::spawn([&] {
    semaphore.acquire(1);
    order.push_back(1);
  });
  weft::this_fiber::yield();
  // Two permits are free, but somebody is in front.
  CHECK(order.empty());
  CHECK(!semaphore.try_acquire(1));
  CHECK(!semaphore.try_acquire_for(10us, 1));
  CHECK(semaphore.available_hint() == 2);
  semaphore.release(3);
  big.join();
  CHECK(order == std::vector<int>{5});
  semaphore.release(1);
  small.join();
  CHECK(order == std::vector<int>{5, 1});
}

FIBER_TEST_CASE("a big demand that gives up lets the small ones behind it through") {
  Semaphore semaphore(2);
  std::atomic<bool> asked{false};
  auto big = weft::spawn([&] {
    asked.store(true);
    return semaphore.try_acquire_for(3ms, 5);
  });
  while (!asked.load()) weft::this_fiber::yield();
  auto first = weft::spawn([&] { semaphore.acquire(1); });
  auto second = weft::spawn([&] { semaphore.acquire(1); });
  CHECK(!big.join());
  first.join();
  second.join();
  CHECK(semaphore.available_hint() == 0);
}

FIBER_TEST_CASE("one release serves as many as it can") {
  Semaphore semaphore(0);
  std::atomic<int> through{0};
  std::vector<weft::JoinHandle<void>> fibers;
  for (int i = 0; i < 10; ++i) {
    fibers.push_back(weft::spawn([&] {
      semaphore.acquire(2);
      through.fetch_add(1);
    }));
  }
  semaphore.release(19);
  while (through.load() < 9) weft::this_fiber::yield();
  for (int i = 0; i < 20; ++i) weft::this_fiber::yield();
  CHECK(through.load() == 9);
  semaphore.release(1);
}

FIBER_TEST_CASE("a wait with a deadline before the beginning of time has passed") {
  Semaphore semaphore(0);
  auto waiter =
      weft::spawn([&] { return semaphore.try_acquire_until(weft::Deadline::at_nanoseconds(-1)); });
  // Bounded, so that a failure is a failure and no hang.
  const bool ended = waiter.wait_for(1s);
  CHECK(ended);
  if (!ended) semaphore.release();
  (void)waiter.join();
}

FIBER_TEST_CASE("it may be destroyed by whom a release has let through") {
  for (int round = 0; round < 2'000 / static_cast<int>(kSlowdown); ++round) {
    auto semaphore = std::make_unique<Semaphore>(0);
    weft::go([&semaphore = *semaphore] { semaphore.release(); });
    semaphore->acquire();
    semaphore.reset();
  }
}

TEST_SUITE_END();

}  // namespace

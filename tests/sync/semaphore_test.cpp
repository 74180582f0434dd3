#include <weft/semaphore.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/order_log.hpp"
#include "tests/support/random.hpp"
#include "tests/sync/callers.hpp"

namespace {

using namespace std::chrono_literals;
using weft::Semaphore;
using weft::test::await_parked;
using weft::test::kSlowdown;
using weft::test::parked_fibers;
using weft::test::run_mixed;

TEST_SUITE_BEGIN("sync/semaphore");

THREAD_TEST_CASE("an acquire succeeds only while enough permits of the semaphore are free") {
  Semaphore semaphore(3);
  CHECK(semaphore.try_acquire());
  CHECK(semaphore.try_acquire(2));
  CHECK(!semaphore.try_acquire());
  CHECK(semaphore.try_acquire(0));
  CHECK(semaphore.available_hint() == 0);
  semaphore.release(2);
  CHECK(!semaphore.try_acquire(3));
  CHECK(semaphore.available_hint() == 2);
  semaphore.acquire(2);
  const auto deadline = weft::Deadline::after(200us);
  CHECK(!semaphore.try_acquire_until(deadline));
  CHECK(deadline.passed());
}

THREAD_TEST_CASE("a semaphore never grants more permits than it has") {
  Semaphore semaphore(3);
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  const int rounds = 1'000 / static_cast<int>(kSlowdown);
  const auto enter = [&](std::uint64_t number) {
    weft::test::Random random(number);
    for (int i = 0; i < rounds; ++i) {
      const std::uint64_t weight = 1 + random.below(3);
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

FIBER_TEST_CASE_WITH("waiters of a semaphore are served in FIFO order", {.workers = {1}}) {
  Semaphore semaphore(0);
  weft::test::OrderLog order;
  std::vector<weft::JoinHandle<void>> fibers;
  for (int i = 0; i < 10; ++i) {
    fibers.push_back(weft::spawn([&, i] {
      semaphore.acquire();
      order.add(i);
    }));
    weft::this_fiber::yield();
  }
  for (int i = 0; i < 10; ++i) {
    semaphore.release();
    for (int turn = 0; turn < 3; ++turn) weft::this_fiber::yield();
  }
  for (auto& fiber : fibers) fiber.join();
  CHECK(order.take() == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
}

FIBER_TEST_CASE_WITH("an acquire of many permits is not overtaken by later acquires of few permits",
                     {.workers = {1}}) {
  Semaphore semaphore(2);
  weft::test::OrderLog order;
  auto big = weft::spawn([&] {
    semaphore.acquire(5);
    order.add(5);
  });
  weft::this_fiber::yield();
  auto small = weft::spawn([&] {
    semaphore.acquire(1);
    order.add(1);
  });
  weft::this_fiber::yield();
  // Two permits are free, but an earlier caller waits.
  CHECK(order.take().empty());
  CHECK(!semaphore.try_acquire(1));
  CHECK(!semaphore.try_acquire_for(10us, 1));
  CHECK(semaphore.available_hint() == 2);
  semaphore.release(3);
  big.join();
  CHECK(order.take() == std::vector<int>{5});
  semaphore.release(1);
  small.join();
  CHECK(order.take() == std::vector<int>{1});
}

FIBER_TEST_CASE(
    "waiting acquires are admitted when the large acquire that precedes them gives up") {
  // On a busy machine, the first waiter may give up before others wait behind it; the test then
  // retries with more time.
  bool were_behind = false;
  for (auto patience = 3ms; !were_behind; patience *= 2) {
    Semaphore semaphore(2);
    auto big = weft::spawn([&] { return semaphore.try_acquire_for(patience, 5); });
    while (!big.done() && parked_fibers(runtime, "semaphore") < 1) weft::this_fiber::yield();
    auto first = weft::spawn([&] { semaphore.acquire(1); });
    auto second = weft::spawn([&] { semaphore.acquire(1); });
    while (!big.done() && !were_behind) {
      weft::this_fiber::yield();
      were_behind = parked_fibers(runtime, "semaphore") == 3;
    }
    CHECK(!big.join());
    first.join();
    second.join();
    CHECK(semaphore.available_hint() == 0);
  }
}

FIBER_TEST_CASE(
    "an acquire of all permits succeeds even though small acquires come and go continuously") {
  constexpr std::uint64_t kPermits = 5;
  Semaphore semaphore(kPermits);
  std::atomic<bool> stop{false};
  std::vector<weft::JoinHandle<void>> greedy;
  for (std::uint64_t i = 0; i < kPermits; ++i) {
    greedy.push_back(weft::spawn([&] {
      while (!stop.load()) {
        semaphore.acquire();
        weft::this_fiber::yield();
        semaphore.release();
      }
    }));
  }
  for (int i = 0; i < 20; ++i) {
    semaphore.acquire(kPermits);
    weft::this_fiber::yield();
    semaphore.release(kPermits);
  }
  stop.store(true);
}

// Callers act as readers and a writer: a read needs one permit, a write all permits.
FIBER_TEST_CASE(
    "when a stop request ends an acquire of all permits, the acquires that wait behind it are "
    "admitted") {
  Semaphore semaphore(10);
  semaphore.acquire();
  std::stop_source stop;
  auto writer = weft::spawn([&] { return semaphore.try_acquire_until(stop.get_token(), 10); });
  await_parked(runtime, "semaphore", 1);
  auto reader = weft::spawn([&] { semaphore.acquire(); });
  await_parked(runtime, "semaphore", 2);
  stop.request_stop();
  CHECK(!writer.join());
  reader.join();
  CHECK(semaphore.available_hint() == 8);
}

FIBER_TEST_CASE("a release admits as many waiters as the released permits allow") {
  Semaphore semaphore(0);
  std::atomic<int> through{0};
  std::vector<weft::JoinHandle<void>> fibers;
  for (int i = 0; i < 10; ++i) {
    fibers.push_back(weft::spawn([&] {
      semaphore.acquire(2);
      through.fetch_add(1);
    }));
  }
  await_parked(runtime, "semaphore", 10);
  semaphore.release(19);
  while (through.load() < 9) weft::this_fiber::yield();
  CHECK(parked_fibers(runtime, "semaphore") == 1);
  CHECK(through.load() == 9);
  semaphore.release(1);
}

FIBER_TEST_CASE("an acquire ends at once when its deadline is a negative time") {
  Semaphore semaphore(0);
  auto waiter =
      weft::spawn([&] { return semaphore.try_acquire_until(weft::Deadline::at_nanoseconds(-1)); });
  CHECK(!waiter.join());  // The test hangs if the waiter waits forever.
}

FIBER_TEST_CASE("the caller that a release has admitted may destroy the semaphore") {
  for (int round = 0; round < 2'000 / static_cast<int>(kSlowdown); ++round) {
    auto semaphore = std::make_unique<Semaphore>(0);
    weft::go([&semaphore = *semaphore] { semaphore.release(); });
    semaphore->acquire();
    semaphore.reset();
  }
}

THREAD_TEST_CASE(
    "more permits may be released to a semaphore than were acquired, even beyond 32 bits") {
  Semaphore semaphore(0);
  constexpr std::uint64_t kMany = std::uint64_t{1} << 40;
  semaphore.release(kMany);
  CHECK(semaphore.available_hint() == kMany);
  CHECK(!semaphore.try_acquire(kMany + 1));
  CHECK(semaphore.try_acquire(kMany));
  auto waiter = weft::spawn([&] { semaphore.acquire(kMany + 7); });
  await_parked(runtime, "semaphore", 1);
  semaphore.release(kMany);
  CHECK(!waiter.wait_for(100us));
  semaphore.release(8);
  waiter.join();
  CHECK(semaphore.available_hint() == 1);
}

FIBER_TEST_CASE("growing a semaphore admits its waiters in order") {
  Semaphore semaphore(1);
  semaphore.acquire();
  std::vector<weft::JoinHandle<void>> fibers;
  for (int i = 0; i < 4; ++i) {
    fibers.push_back(weft::spawn([&] { semaphore.acquire(2); }));
    await_parked(runtime, "semaphore", i + 1);
  }
  semaphore.resize(6);  // Two waiters are served, and one permit remains.
  fibers[0].join();
  fibers[1].join();
  CHECK(semaphore.available_hint() == 1);
  CHECK(!fibers[2].done());
  CHECK(!semaphore.try_acquire(1));  // An earlier caller waits.
  semaphore.resize(9);
  fibers[2].join();
  fibers[3].join();
  CHECK(semaphore.available_hint() == 0);
}

THREAD_TEST_CASE(
    "a shrunk semaphore grants no permit until the number in use is below its new total") {
  Semaphore semaphore(5);
  semaphore.acquire(4);
  semaphore.resize(2);
  CHECK(semaphore.available_hint() == 0);
  CHECK(!semaphore.try_acquire());
  semaphore.release(2);
  CHECK(!semaphore.try_acquire());
  auto waiter = weft::spawn([&] { semaphore.acquire(2); });
  await_parked(runtime, "semaphore", 1);
  semaphore.release();
  CHECK(!waiter.wait_for(100us));
  semaphore.release();
  waiter.join();
  CHECK(semaphore.available_hint() == 0);
  semaphore.release(2);
  CHECK(semaphore.available_hint() == 2);
  semaphore.resize(0);
  CHECK(!semaphore.try_acquire());
}

THREAD_TEST_CASE("a semaphore has the expected number of permits after random resizes") {
  Semaphore semaphore(4);
  const int rounds = 1'000 / static_cast<int>(kSlowdown);
  run_mixed(6, 2, [&](int number) {
    weft::test::Random random(static_cast<std::uint64_t>(number));
    for (int i = 0; i < rounds; ++i) {
      if (number == 0) {
        semaphore.resize(random.below(9));
        weft::this_fiber::yield();
        continue;
      }
      const std::uint64_t weight = 1 + random.below(3);
      if (!semaphore.try_acquire_for(std::chrono::microseconds(random.below(3)), weight)) continue;
      if (random.one_in(4)) weft::this_fiber::yield();
      semaphore.release(weight);
    }
  });
  semaphore.resize(7);
  CHECK(semaphore.available_hint() == 7);
}

// A release that still has to wake other waiters may have admitted the last acquire, or free
// permits were available.
THREAD_TEST_CASE("a semaphore never has more than kMost permits") {
  constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();
  Semaphore semaphore(kAll);
  CHECK(semaphore.available_hint() == Semaphore::kMost);
  semaphore.release(kAll);
  CHECK(semaphore.available_hint() == Semaphore::kMost);
  CHECK(semaphore.try_acquire());
  semaphore.resize(kAll);
  CHECK(semaphore.available_hint() == Semaphore::kMost - 1);
  semaphore.resize(0);
  CHECK_FALSE(semaphore.try_acquire());
  semaphore.release(2);
  CHECK(semaphore.try_acquire());
}

THREAD_TEST_CASE("a semaphore may be destroyed as soon as its last acquire has returned") {
  const int rounds = 1'000 / static_cast<int>(kSlowdown);
  for (int round = 0; round < rounds; ++round) {
    auto* semaphore = new Semaphore(0);
    auto* left = new std::atomic<int>(4);
    const auto use = [=](std::uint64_t span) {
      while (!semaphore->try_acquire_for(std::chrono::microseconds(span))) {
      }
      if (left->fetch_sub(1) != 1) return;
      delete semaphore;
      delete left;
    };
    weft::go([=] { semaphore->release(); });
    auto first = weft::spawn([=] { use(0); });
    auto second = weft::spawn([=] { use(1); });
    auto third = weft::spawn([=] { use(1'000'000); });
    weft::go([=] { semaphore->release(3); });
    use(2);
  }
}

TEST_SUITE_END();

}  // namespace

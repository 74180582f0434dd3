#include <weft/wait_group.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <vector>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

namespace {

using namespace std::chrono_literals;
using weft::WaitGroup;
using weft::test::kSlowdown;

TEST_SUITE_BEGIN("sync/wait_group");

THREAD_TEST_CASE("nobody waits for nothing") {
  WaitGroup group;
  group.wait();
  CHECK(group.wait_for(0ns));
  CHECK(group.wait_until(weft::Deadline::past()));
  weft::spawn([&] { group.wait(); }).join();
}

THREAD_TEST_CASE("a wait ends when all is done, and sees what was done") {
  for (int round = 0; round < 20; ++round) {
    constexpr int kCount = 50;
    WaitGroup group;
    std::vector<int> results(kCount, 0);
    group.add(kCount);
    for (int i = 0; i < kCount; ++i) {
      weft::go([&, i] {
        results[static_cast<std::size_t>(i)] = i + 1;
        group.done();
      });
    }
    group.wait();
    for (int i = 0; i < kCount; ++i) CHECK(results[static_cast<std::size_t>(i)] == i + 1);
  }
}

FIBER_TEST_CASE("a group can be used again after a wait") {
  WaitGroup group;
  std::atomic<int> done{0};
  for (int round = 1; round <= 100; ++round) {
    group.add(3);
    for (int i = 0; i < 3; ++i) {
      weft::go([&] {
        done.fetch_add(1);
        group.done();
      });
    }
    group.wait();
    CHECK(done.load() == 3 * round);
  }
}

THREAD_TEST_CASE("any number may wait, fibers and plain threads") {
  WaitGroup group;
  group.add();
  std::atomic<int> through{0};
  const auto wait = [&] {
    group.wait();
    through.fetch_add(1);
  };
  std::vector<weft::JoinHandle<void>> fibers;
  for (int i = 0; i < 10; ++i) fibers.push_back(weft::spawn(wait));
  std::thread first(wait);
  std::thread second(wait);
  for (int i = 0; i < 100; ++i) std::this_thread::yield();
  CHECK(through.load() == 0);
  group.done();
  first.join();
  second.join();
  for (auto& fiber : fibers) fiber.join();
  CHECK(through.load() == 12);
}

THREAD_TEST_CASE("a timed wait gives up at its deadline, and the group stays usable") {
  WaitGroup group;
  group.add();
  const auto attempt = [&] {
    for (const auto span : {0us, 1us, 300us}) {
      const auto deadline = weft::Deadline::after(span);
      CHECK(!group.wait_until(deadline));
      CHECK(deadline.passed());
    }
  };
  attempt();
  weft::spawn(attempt).join();
  auto waiting = weft::spawn([&] { return group.wait_for(1h); });
  group.done();
  CHECK(waiting.join());
  CHECK(group.wait_for(0ns));
}

// The classic: the group lives on the waiter's stack and is gone as soon as wait() has returned,
// while the last done() may still be on its way out. AddressSanitizer sees a late touch.
THREAD_TEST_CASE("it may be destroyed as soon as a wait has returned") {
  const int rounds = 3'000 / static_cast<int>(kSlowdown);
  const auto use_and_destroy = [&] {
    for (int round = 0; round < rounds; ++round) {
      auto group = std::make_unique<WaitGroup>();
      group->add(2);
      weft::go([&group = *group] { group.done(); });
      weft::go([&group = *group] { group.done(); });
      group->wait();
      group.reset();
    }
  };
  weft::spawn(use_and_destroy).join();
  use_and_destroy();
}

THREAD_TEST_CASE("it may be destroyed as soon as a wait after a timed one has returned") {
  const int rounds = 3'000 / static_cast<int>(kSlowdown);
  const auto use_and_destroy = [&] {
    weft::test::Random random(1);
    for (int round = 0; round < rounds; ++round) {
      auto group = std::make_unique<WaitGroup>();
      group->add(1);
      weft::go([&group = *group] { group.done(); });
      while (!group->wait_for(std::chrono::microseconds(random.below(3)))) {
      }
      group.reset();
    }
  };
  weft::spawn(use_and_destroy).join();
  use_and_destroy();
}

TEST_SUITE_END();

}  // namespace

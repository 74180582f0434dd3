#include <weft/wait_group.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"
#include "tests/sync/callers.hpp"

namespace {

using namespace std::chrono_literals;
using weft::WaitGroup;
using weft::test::await_parked;
using weft::test::kSlowdown;

TEST_SUITE_BEGIN("sync/wait_group");

THREAD_TEST_CASE("a wait for an empty wait group returns at once") {
  WaitGroup group;
  group.wait();
  CHECK(group.wait_for(0ns));
  CHECK(group.wait_until(weft::Deadline::past()));
  weft::spawn([&] { group.wait(); }).join();
}

THREAD_TEST_CASE(
    "WaitGroup::wait() returns at count 0, and its caller then sees the writes made before each "
    "done()") {
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

FIBER_TEST_CASE("a wait group can be used again after a wait") {
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

THREAD_TEST_CASE("any number of fibers and plain threads may wait for a wait group") {
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
  await_parked(runtime, "wait group", 10);
  CHECK(through.load() == 0);
  group.done();
  first.join();
  second.join();
  for (auto& fiber : fibers) fiber.join();
  CHECK(through.load() == 12);
}

THREAD_TEST_CASE(
    "a timed wait for a wait group gives up at its deadline, and the wait group stays usable") {
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

// The group is on the waiter's stack, and is destroyed as soon as wait() has returned, perhaps
// before the last done() has returned. AddressSanitizer detects a late access.
THREAD_TEST_CASE("a wait group may be destroyed as soon as a wait has returned") {
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

THREAD_TEST_CASE(
    "a wait group may be destroyed as soon as a wait that follows a timed wait has returned") {
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

THREAD_TEST_CASE("WaitGroup::go() counts a fiber until the fiber's callable is destroyed") {
  struct Flag {
    std::shared_ptr<std::atomic<int>> gone;
    ~Flag() {
      if (gone) gone->fetch_add(1);
    }
    Flag(Flag&&) = default;
    explicit Flag(std::shared_ptr<std::atomic<int>> counter) : gone(std::move(counter)) {}
  };
  constexpr int kFibers = 20;
  const auto gone = std::make_shared<std::atomic<int>>(0);
  std::atomic<int> ran{0};
  WaitGroup group;
  for (int i = 0; i < kFibers; ++i) {
    group.go([&ran, flag = Flag(gone)] {
      weft::this_fiber::yield();
      ran.fetch_add(1);
    });
  }
  group.go([&] { group.go([&] { ran.fetch_add(1); }); });  // A task may add to it.
  group.wait();
  CHECK(ran.load() == kFibers + 1);
  CHECK(gone->load() == kFibers);
}

THREAD_TEST_CASE_WITH("WaitGroup::go() leaves the count unchanged if no fiber could be started",
                      {.workers = {1, 2}, .options = {.max_fibers = 2}}) {
  weft::WaitGroup group;
  weft::WaitGroup gate;
  gate.add();
  const auto start_many = [&] {
    for (;;) group.go([&] { gate.wait(); });
  };
  CHECK_THROWS_AS(start_many(), std::system_error);
  struct Unmovable {
    Unmovable() = default;
    Unmovable(const Unmovable&) { throw 7; }
    void operator()() {}
  } unmovable;
  CHECK_THROWS_AS(group.go(unmovable), int);
  CHECK(!group.wait_for(0ns));
  gate.done();
  group.wait();
}

THREAD_TEST_CASE_WITH("WaitGroup::go() reduces the count even when an exception ends the fiber",
                      {.options = {.on_exception = [](const std::exception_ptr&) {}}}) {
  WaitGroup group;
  group.go([] { throw 7; });
  group.wait();
}

TEST_SUITE_END();

}  // namespace

// Stresses one primitive in each test, as hard as possible.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/runtime.hpp>
#include <weft/semaphore.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/stress/workload.hpp"
#include "tests/support/random.hpp"

namespace {

using namespace std::chrono_literals;
using weft::test::drawn_workers;
using weft::test::Progress;
using weft::test::Random;

TEST_SUITE_BEGIN("stress/storm");

FIBER_TEST_CASE_WITH("every fiber spawned by one fiber runs exactly once while all workers steal",
                     {.workers = {drawn_workers(1)}, .monitored = true}) {
  Progress progress(runtime);
  Random random(1);
  while (!progress.time_is_up()) {
    const std::size_t count = 1 + random.below(2000);
    std::vector<std::atomic<int>> runs(count);
    weft::WaitGroup group;
    group.add(count);
    for (std::size_t i = 0; i < count; ++i) {
      weft::go([&, i] {
        runs[i].fetch_add(1);
        if (i % 16 == 0) weft::this_fiber::yield();
        progress.made();
        group.done();
      });
    }
    group.wait();
    std::size_t wrong = 0;
    for (const auto& times : runs) wrong += times.load() != 1 ? 1U : 0U;
    CHECK(wrong == 0);
  }
}

// A deadline and a wake repeatedly come at the same moment. A released permit either goes to the
// waiter or remains.
THREAD_TEST_CASE_WITH("no permit is lost when timeouts race with releases of a semaphore",
                      {.workers = {drawn_workers(2)}, .monitored = true}) {
  Progress progress(runtime);
  struct Pair {
    weft::Semaphore permits{0};
    std::uint64_t given = 0;
    std::uint64_t taken = 0;
  };
  std::vector<std::unique_ptr<Pair>> pairs;
  std::vector<weft::JoinHandle<void>> fibers;
  for (std::uint64_t i = 0; i < 8; ++i) {
    pairs.push_back(std::make_unique<Pair>());
    Pair& pair = *pairs.back();
    fibers.push_back(weft::spawn([&, i] {
      Random random(i);
      while (!progress.time_is_up()) {
        const std::chrono::microseconds span(random.below(200));
        if (pair.permits.try_acquire_for(span)) ++pair.taken;
        progress.made();
      }
    }));
    fibers.push_back(weft::spawn([&, i] {
      Random random(100 + i);
      while (!progress.time_is_up()) {
        weft::this_fiber::sleep_for(std::chrono::microseconds(random.below(200)));
        ++pair.given;
        pair.permits.release();
      }
    }));
  }
  for (auto& fiber : fibers) fiber.join();
  for (auto& pair : pairs) {
    CHECK(pair->given == pair->taken + pair->permits.available_hint());
  }
}

// A token circulates among fibers, plain threads and a second runtime, so each wake comes from a
// different kind of caller.
THREAD_TEST_CASE_WITH(
    "values circulate through a ring of channels between plain threads and fibers of two runtimes",
    {.workers = {drawn_workers(3)}, .monitored = true}) {
  Progress progress(runtime);
  weft::Runtime second({.workers = 2});
  constexpr std::size_t kCallers = 12;
  std::vector<std::unique_ptr<weft::Channel<std::uint64_t>>> ring;
  for (std::size_t i = 0; i < kCallers; ++i) {
    ring.push_back(std::make_unique<weft::Channel<std::uint64_t>>(i % 2));
  }
  weft::WaitGroup done;
  done.add(kCallers);
  const auto pass_on = [&](std::size_t i) {
    const std::uint64_t id = weft::this_fiber::id();
    while (const std::optional<std::uint64_t> token = ring[i]->receive()) {
      progress.made();
      if (weft::this_fiber::id() != id) FAIL_CHECK("another id");
      if (!ring[(i + 1) % kCallers]->send(*token + 1)) break;
    }
    // Both neighbours may be waiting for this caller.
    ring[i]->close();
    ring[(i + 1) % kCallers]->close();
    done.done();
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kCallers; ++i) {
    if (i % 4 == 0) {
      threads.emplace_back(pass_on, i);
    } else if (i % 4 == 2) {
      second.go([&, i] { pass_on(i); });
    } else {
      runtime.go([&, i] { pass_on(i); });
    }
  }
  // There are fewer tokens than callers. Otherwise all callers could be sending, and the ring would
  // stop.
  for (std::uint64_t token = 0; token < 5; ++token) CHECK(ring[token]->send(token));
  while (!progress.time_is_up()) std::this_thread::sleep_for(10ms);
  ring[0]->close();
  done.wait();
  for (std::thread& thread : threads) thread.join();
}

THREAD_TEST_CASE_WITH("a sleep of any duration ends, and never before its deadline",
                      {.workers = {drawn_workers(4)}, .monitored = true}) {
  Progress progress(runtime);
  std::vector<weft::JoinHandle<void>> fibers;
  for (std::uint64_t i = 0; i < 500; ++i) {
    fibers.push_back(weft::spawn([&, i] {
      Random random(i);
      while (!progress.time_is_up()) {
        const auto deadline =
            weft::Deadline::after(std::chrono::microseconds(random.below(20'000)));
        weft::this_fiber::sleep_until(deadline);
        if (!deadline.passed()) FAIL_CHECK("too early");
        progress.made();
      }
    }));
  }
}

TEST_CASE("short-lived runtimes under load run each of their fibers") {
  const weft::test::TestGuard guard("runtimes under fire");
  const auto end = std::chrono::steady_clock::now() + weft::test::stress_time();
  Random random(1);
  while (std::chrono::steady_clock::now() < end) {
    std::atomic<std::uint64_t> ran{0};
    std::uint64_t spawned = 0;
    {
      weft::Runtime runtime({.workers = static_cast<unsigned>(1 + random.below(4))});
      spawned = random.below(300);
      for (std::uint64_t i = 0; i < spawned; ++i) {
        runtime.go([&ran, i] {
          if (i % 3 == 0) weft::this_fiber::yield();
          if (i % 7 == 0) weft::this_fiber::sleep_for(std::chrono::microseconds(i));
          ran.fetch_add(1);
        });
      }
    }
    CHECK(ran.load() == spawned);
  }
}

TEST_SUITE_END();

}  // namespace

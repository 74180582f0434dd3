#include <weft/barrier.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>
#include <weft/semaphore.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/sync/callers.hpp"

namespace {

using namespace std::chrono_literals;
using weft::Barrier;
using weft::test::await_parked;
using weft::test::kSlowdown;
using weft::test::run_mixed;

TEST_SUITE_BEGIN("sync/barrier");

TEST_CASE("a barrier for 0 callers can be made and destroyed, and completes no phase") {
  int completed = 0;
  {
    const Barrier barrier(0, [&]() noexcept { ++completed; });
  }
  CHECK(completed == 0);
}

// A value moves from cell to cell: a fiber that runs ahead of the others, or lags, sees a wrong
// value.
THREAD_TEST_CASE(
    "a barrier begins no phase before all callers have arrived at the end of the previous phase") {
  constexpr int kCallers = 7;
  const int phases = 500 / static_cast<int>(kSlowdown);
  Barrier barrier(kCallers);
  // Not atomic: the barrier orders them.
  std::array<std::array<int, kCallers>, 2> cells{};
  run_mixed(5, 2, [&](int number) {
    const auto self = static_cast<std::size_t>(number);
    for (int phase = 1; phase <= phases; ++phase) {
      auto& from = cells[static_cast<std::size_t>(phase - 1) % 2];
      auto& to = cells[static_cast<std::size_t>(phase) % 2];
      const int neighbour = from[(self + 1) % kCallers];
      if (neighbour != phase - 1) FAIL_CHECK("a neighbour is in another phase");
      to[self] = neighbour + 1;
      barrier.arrive_and_wait();
    }
  });
}

THREAD_TEST_CASE(
    "the completion function of a barrier runs once per phase, before any caller is released") {
  int completed = 0;  // Not atomic: the barrier orders them.
  int seen = 0;
  std::atomic<int> arriving{0};
  const auto completion = [&]() noexcept {
    ++completed;
    seen = arriving.load();
  };
  Barrier<decltype(completion)> barrier(5, completion);
  run_mixed(4, 1, [&](int) {
    for (int round = 1; round <= 50; ++round) {
      arriving.fetch_add(1);
      barrier.arrive_and_wait();
      if (completed != 2 * round - 1) FAIL_CHECK("not every phase was completed once");
      if (seen != 5 * round) FAIL_CHECK("a phase was completed before all had arrived");
      // Another phase follows, so that no caller arrives while other callers still read.
      barrier.arrive_and_wait();
    }
  });
  CHECK(completed == 100);
}

FIBER_TEST_CASE("the completion function of a barrier may park") {
  weft::Semaphore semaphore(0);
  std::atomic<bool> released{false};
  const auto completion = [&]() noexcept { semaphore.acquire(); };
  Barrier<decltype(completion)> barrier(2, completion);
  auto first = weft::spawn([&] {
    barrier.arrive_and_wait();
    released.store(true);
  });
  await_parked(runtime, "barrier", 1);
  auto last = weft::spawn([&] { barrier.arrive_and_wait(); });
  await_parked(runtime, "semaphore", 1);
  CHECK(!released.load());
  semaphore.release();
  first.join();
  last.join();
}

THREAD_TEST_CASE(
    "a caller may arrive at a barrier, and wait later for the end of the phase in which it "
    "arrived") {
  Barrier barrier(2);
  auto token = barrier.arrive();
  CHECK(!barrier.wait_for(token, 10us));
  auto other = weft::spawn([&] { barrier.arrive_and_wait(); });
  CHECK(barrier.wait_until(token, {}));
  other.join();
  auto next = barrier.arrive(2);
  barrier.wait(std::move(token));  // The token belongs to a phase that ended long ago.
  barrier.wait(std::move(next));
}

THREAD_TEST_CASE("a barrier does not wait in later phases for a caller that has dropped out") {
  std::atomic<int> phases{0};
  const auto completion = [&]() noexcept { phases.fetch_add(1); };
  Barrier<decltype(completion)> barrier(5, completion);
  run_mixed(4, 1, [&](int number) {
    for (int i = 0; i < number; ++i) barrier.arrive_and_wait();
    barrier.arrive_and_drop();
  });
  // The caller that stays longest has passed four phases, and ended the fifth.
  CHECK(phases.load() == 5);
}

THREAD_TEST_CASE("a timed wait at a barrier gives up at its deadline, and the phase continues") {
  Barrier barrier(2);
  auto token = barrier.arrive();
  const auto attempt = [&] {
    for (const auto span : {0us, 1us, 300us}) {
      const auto deadline = weft::Deadline::after(span);
      CHECK(!barrier.wait_until(token, deadline));
      CHECK(deadline.passed());
    }
  };
  attempt();
  weft::spawn(attempt).join();
  auto waiting = weft::spawn([&] { return barrier.wait_for(token, 1h); });
  (void)barrier.arrive();
  CHECK(waiting.join());
  CHECK(barrier.wait_for(token, 0ns));
}

THREAD_TEST_CASE(
    "a barrier may be destroyed by the first caller that returns from the last phase") {
  const int rounds = 1'000 / static_cast<int>(kSlowdown);
  for (int round = 0; round < rounds; ++round) {
    auto barrier = std::make_unique<Barrier<>>(3);
    std::atomic<bool> destroyed{false};
    run_mixed(3, 0, [&](int) {
      barrier->arrive_and_wait();
      barrier->arrive_and_wait();
      if (!destroyed.exchange(true)) barrier.reset();
    });
  }
}

TEST_SUITE_END();

}  // namespace

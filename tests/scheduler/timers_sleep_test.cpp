// Tests sleeps in the wheel, in simulated time.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <thread>
#include <vector>

#include "fibers/fiber.hpp"
#include "scheduler/timers/timers_sleep.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

namespace {

using weft::Deadline;
using weft::fibers::Fiber;
using weft::scheduler::Timer;
using weft::scheduler::Timers;
using weft::test::kSlowdown;

constexpr std::int64_t kTick = std::int64_t{1} << Timers::kTickShift;

// Holds the parts of a fiber that the wheel uses, and the timer on the fiber's stack.
struct Sleeper {
  Fiber fiber;
  Timer timer;
};

void sleep_until(Timers& timers, Sleeper& sleeper, std::int64_t deadline) {
  sleeper.timer = Timer{};
  sleeper.timer.waker = weft::detail::Waker::of_fiber(&sleeper.fiber);
  const Deadline until = Deadline::at_nanoseconds(deadline);
  if (!timers.try_follow(sleeper.fiber, until)) timers.add_sleep(sleeper.timer, until);
}

// Returns all fibers that the chain of `expired` wakes, in its order.
std::vector<Fiber*> woken_by(Timer* expired) {
  std::vector<Fiber*> woken;
  for (Timer* timer = expired; timer != nullptr; timer = timer->next) {
    Fiber* fiber = timer->waker.fiber();
    if (!timer->leads) {
      woken.push_back(fiber);
      continue;
    }
    for (; fiber != nullptr; fiber = fiber->next) woken.push_back(fiber);
  }
  return woken;
}

TEST_SUITE_BEGIN("scheduler/timers_sleep");

TEST_CASE("sleeps that end in one tick share a timer and end in the order in which they began") {
  Timers timers(0);
  std::vector<Sleeper> sleepers(5);
  std::vector<Fiber*> expected;
  for (Sleeper& sleeper : sleepers) {
    sleep_until(timers, sleeper, 10 * kTick + 1);
    expected.push_back(&sleeper.fiber);
  }
  CHECK(sleepers[0].timer.linked);
  for (std::size_t i = 1; i < sleepers.size(); ++i) CHECK(!sleepers[i].timer.linked);
  CHECK(timers.expire(10 * kTick) == nullptr);
  CHECK(woken_by(timers.expire(11 * kTick)) == expected);
  CHECK(timers.next_hint().is_never());
}

TEST_CASE("sleeps of alternating lengths share one timer for each length") {
  constexpr std::size_t kLengths = 8;
  Timers timers(0);
  std::vector<Sleeper> sleepers(10 * kLengths);
  for (std::size_t i = 0; i < sleepers.size(); ++i) {
    sleep_until(timers, sleepers[i], static_cast<std::int64_t>(i % kLengths) * kTick);
  }
  const auto linked = std::count_if(sleepers.begin(), sleepers.end(),
                                    [](const Sleeper& sleeper) { return sleeper.timer.linked; });
  CHECK(linked == kLengths);
  for (std::size_t length = 0; length < kLengths; ++length) {
    std::vector<Fiber*> expected;
    for (std::size_t i = length; i < sleepers.size(); i += kLengths) {
      expected.push_back(&sleepers[i].fiber);
    }
    CHECK(woken_by(timers.expire(static_cast<std::int64_t>(length + 1) * kTick)) == expected);
  }
}

TEST_CASE("a sleep does not share the timer of an ended sleep or of a cancellable sleep") {
  Timers timers(0);
  Sleeper first;
  Sleeper second;
  sleep_until(timers, first, 0);
  CHECK(woken_by(timers.expire(kTick)) == std::vector{&first.fiber});
  // The wheel has reached the tick of the first timer, so the second one is a tick later.
  sleep_until(timers, second, 0);
  CHECK(first.fiber.next == nullptr);
  CHECK(timers.expire(kTick) == nullptr);
  CHECK(woken_by(timers.expire(2 * kTick)) == std::vector{&second.fiber});

  Sleeper cancelled;
  cancelled.timer.waker = weft::detail::Waker::of_fiber(&cancelled.fiber);
  timers.add(cancelled.timer, Deadline::at_nanoseconds(5 * kTick));
  sleep_until(timers, first, 5 * kTick);
  sleep_until(timers, second, 5 * kTick);
  timers.cancel(cancelled.timer);
  CHECK(woken_by(timers.expire(6 * kTick)) == std::vector{&first.fiber, &second.fiber});
}

TEST_CASE(
    "each sleep in a random sequence of operations ends at most one tick after its deadline") {
  weft::test::Random random(4);
  for (int round = 0; round < 20; ++round) {
    std::int64_t now = static_cast<std::int64_t>(random.below(std::uint64_t{1} << 40));
    Timers timers(now);
    std::deque<Sleeper> sleepers(300);
    std::vector<Sleeper*> awake;
    for (Sleeper& sleeper : sleepers) awake.push_back(&sleeper);
    std::multimap<std::int64_t, Sleeper*> oracle;
    for (int step = 0; step < 3'000; ++step) {
      if (!random.one_in(8) && !awake.empty()) {
        // Most deadlines are in a few ticks that many sleeps share; some use the same place of
        // latest_.
        const auto ticks = static_cast<std::int64_t>(
            random.one_in(4) ? random.below(6) * 16 : random.below(4) * random.below(100));
        sleep_until(timers, *awake.back(), now + ticks * kTick);
        oracle.emplace(now + ticks * kTick, awake.back());
        awake.pop_back();
        continue;
      }
      now += static_cast<std::int64_t>(
          random.below(static_cast<std::uint64_t>(random.one_in(20) ? 200 * kTick : 2 * kTick)));
      for (Fiber* fiber : woken_by(timers.expire(now))) {
        const auto found = std::find_if(oracle.begin(), oracle.end(), [fiber](const auto& entry) {
          return &entry.second->fiber == fiber;
        });
        REQUIRE(found != oracle.end());
        REQUIRE(found->first <= now);
        awake.push_back(found->second);
        oracle.erase(found);
      }
      if (!oracle.empty()) REQUIRE(oracle.begin()->first > now - kTick);
    }
  }
}

// As in the scheduler, a worker adds sleeps while another worker or the same one expires them.
TEST_CASE("a sleep that begins while other sleeps end wakes its fiber exactly once") {
  weft::test::TestGuard guard("sleeps race");
  const int rounds = 50'000 / static_cast<int>(kSlowdown);
  std::vector<Sleeper> sleepers(static_cast<std::size_t>(rounds));
  std::map<Fiber*, int> times;
  Timers timers(0);
  std::atomic<std::int64_t> now{0};
  std::atomic<bool> done{false};
  std::thread clock([&] {
    const auto wake_all = [&](std::int64_t time) {
      for (Fiber* fiber : woken_by(timers.expire(time))) ++times[fiber];
    };
    while (!done.load()) wake_all(now += kTick / 8);
    wake_all(now += 10 * kTick);
  });
  weft::test::Random random(5);
  for (Sleeper& sleeper : sleepers) {
    const auto span = static_cast<std::int64_t>(random.below(2 * kTick));
    sleep_until(timers, sleeper, now.load() + span);
  }
  done.store(true);
  clock.join();
  int once = 0;
  for (const auto& [fiber, count] : times) once += count == 1 ? 1 : 0;
  CHECK(once == rounds);
}

TEST_SUITE_END();

}  // namespace

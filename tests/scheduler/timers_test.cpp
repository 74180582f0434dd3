// All tests use simulated time: none waits for a clock.
#include "scheduler/timers/timers.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

namespace {

using weft::Deadline;
using weft::detail::Claim;
using weft::scheduler::Timer;
using weft::scheduler::Timers;
using weft::test::kSlowdown;

constexpr std::int64_t kTick = std::int64_t{1} << Timers::kTickShift;

// Holds a wheel and its oracle, which is a multimap from deadline to timer. Checks that no timer
// fires early or more than a tick late, and that next_hint() is never too late.
class Checked {
 public:
  explicit Checked(std::int64_t now) : now_(now), wheel_(now) {}

  std::int64_t now() const { return now_; }
  std::size_t size() const { return oracle_.size(); }

  void add(Timer& timer, std::int64_t deadline) {
    timer = Timer{};
    wheel_.add(timer, Deadline::at_nanoseconds(deadline));
    // A deadline that has already passed fires at the earliest a tick after now.
    oracle_.emplace(std::max(deadline, now_), &timer);
  }
  // Cancels the oracle's `position`th timer.
  Timer& cancel(std::size_t position) {
    auto found = oracle_.begin();
    std::advance(found, position);
    Timer& timer = *found->second;
    wheel_.cancel(timer);
    REQUIRE(!timer.linked);
    oracle_.erase(found);
    return timer;
  }
  // Returns all timers that fire when the time is `now`.
  std::vector<Timer*> advance(std::int64_t now) {
    now_ = now;
    check_hint();
    std::vector<Timer*> fired;
    for (Timer* timer = wheel_.expire(now); timer != nullptr; timer = timer->next) {
      REQUIRE(!timer->linked);
      fired.push_back(timer);
    }
    for (Timer* timer : fired) {
      const auto found = std::find_if(oracle_.begin(), oracle_.end(),
                                      [timer](const auto& entry) { return entry.second == timer; });
      REQUIRE(found != oracle_.end());
      REQUIRE(found->first <= now);
      oracle_.erase(found);
    }
    if (!oracle_.empty()) REQUIRE(oracle_.begin()->first > now - kTick);
    check_hint();
    return fired;
  }

 private:
  // A worker that sleeps until the hint must not miss a timer by more than a tick.
  void check_hint() {
    if (oracle_.empty()) return;
    const std::int64_t earliest = oracle_.begin()->first;
    REQUIRE(wheel_.next_hint().nanoseconds() <= earliest + kTick);
    if (earliest <= now_ - kTick) REQUIRE(wheel_.due_hint(now_));
  }

  std::int64_t now_;
  Timers wheel_;
  std::multimap<std::int64_t, Timer*> oracle_;
};

// Returns a span from under a tick to years, with evenly distributed magnitudes.
std::int64_t random_span(weft::test::Random& random) {
  const std::uint64_t magnitude = random.below(56);
  return static_cast<std::int64_t>(random.below((std::uint64_t{1} << magnitude) + 1));
}

TEST_SUITE_BEGIN("scheduler/timers");

TEST_CASE("an empty timer wheel never has a due timer") {
  Timers timers(123456789);
  CHECK(timers.next_hint().is_never());
  CHECK(timers.expire(123456789) == nullptr);
  CHECK(timers.expire(std::int64_t{1} << 60) == nullptr);
  CHECK(!timers.due_hint(std::int64_t{1} << 60));
}

TEST_CASE("a timer of any duration fires within a tick of its deadline") {
  for (int bit = 0; bit < 62; ++bit) {
    for (const std::int64_t start : {std::int64_t{0}, std::int64_t{987654321987654}}) {
      const std::int64_t span = std::int64_t{1} << bit;
      if (span > std::numeric_limits<std::int64_t>::max() - start - 2 * kTick) continue;
      Timers timers(start);
      Timer timer;
      const std::int64_t deadline = start + span;
      timers.add(timer, Deadline::at_nanoseconds(deadline));
      REQUIRE(timers.expire(deadline - 1) == nullptr);
      // Follows the hint as a worker does; each look moves the timer down by at least one level.
      int looks = 0;
      Timer* fired = nullptr;
      while (fired == nullptr) {
        const std::int64_t look = timers.next_hint().nanoseconds();
        REQUIRE(look <= deadline + kTick);
        REQUIRE(++looks <= 9);
        fired = timers.expire(look);
        if (fired != nullptr) REQUIRE(look >= deadline);
      }
      REQUIRE(fired == &timer);
      REQUIRE(timers.next_hint().is_never());
    }
  }
}

TEST_CASE("a timer with a deadline in the past fires at the next tick") {
  Timers timers(100 * kTick);
  Timer timer;
  timers.add(timer, Deadline::past());
  CHECK(timers.next_hint().nanoseconds() <= 101 * kTick);
  CHECK(timers.expire(101 * kTick) == &timer);
}

TEST_CASE("a timer with a deadline before the epoch fires at the next tick") {
  Timers timers(100 * kTick);
  Timer timer;
  timers.add(timer, Deadline::at_nanoseconds(-5));
  CHECK(timers.next_hint().nanoseconds() <= 101 * kTick);
  CHECK(timers.expire(101 * kTick) == &timer);
}

TEST_CASE("a timer set to the last deadline before Deadline::never() does not fire early") {
  Timers timers(0);
  Timer timer;
  timers.add(timer, Deadline::at_nanoseconds(std::numeric_limits<std::int64_t>::max() - 1));
  CHECK(timers.expire(std::int64_t{1} << 61) == nullptr);
  timers.cancel(timer);
  CHECK(timers.expire(std::int64_t{1} << 62) == nullptr);
}

TEST_CASE("cancelling a timer twice, or after the timer has fired, does nothing") {
  Timers timers(0);
  Timer first;
  Timer second;
  timers.add(first, Deadline::at_nanoseconds(kTick / 2));
  timers.add(second, Deadline::at_nanoseconds(kTick / 2));
  timers.cancel(first);
  timers.cancel(first);
  CHECK(timers.expire(2 * kTick) == &second);
  CHECK(second.next == nullptr);
  timers.cancel(second);
  timers.add(first, Deadline::at_nanoseconds(3 * kTick));
  CHECK(timers.expire(5 * kTick) == &first);
}

TEST_CASE(
    "a timer is dropped without firing if a notification has already ended the timer's wait") {
  Timers timers(0);
  Timer lost;
  Timer won;
  Claim lost_claim;
  Claim won_claim;
  lost.claim = &lost_claim;
  won.claim = &won_claim;
  CHECK(lost_claim.try_claim(Claim::kNotifier));
  timers.add(lost, Deadline::at_nanoseconds(kTick));
  timers.add(won, Deadline::at_nanoseconds(kTick));
  CHECK(timers.expire(3 * kTick) == &won);
  CHECK(won.next == nullptr);
  CHECK(won_claim.winner() == Claim::kClock);
  CHECK(!lost.linked);
}

TEST_CASE("a timer wheel fires the same timers as a std::multimap model under random operations") {
  weft::test::Random random(1);
  for (int round = 0; round < 20; ++round) {
    Checked checked(random_span(random));
    std::vector<std::unique_ptr<Timer>> owned;
    std::vector<Timer*> unused;
    for (int i = 0; i < 200; ++i) {
      owned.push_back(std::make_unique<Timer>());
      unused.push_back(owned.back().get());
    }
    for (int step = 0; step < 2'000; ++step) {
      if (random.one_in(2) && !unused.empty()) {
        std::int64_t deadline = checked.now() + random_span(random);
        if (random.one_in(10)) deadline = std::max<std::int64_t>(0, checked.now() - 1000);
        checked.add(*unused.back(), deadline);
        unused.pop_back();
      } else if (random.one_in(3) && checked.size() > 0) {
        unused.push_back(&checked.cancel(random.below(checked.size())));
      } else {
        // Makes mostly small steps, and sometimes a leap over many slots.
        const std::int64_t leap =
            random.one_in(20)
                ? random_span(random)
                : static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(3 * kTick)));
        if (checked.now() > std::numeric_limits<std::int64_t>::max() / 4) break;
        for (Timer* timer : checked.advance(checked.now() + leap)) unused.push_back(timer);
      }
    }
  }
}

TEST_CASE("a million timers fire once each, in the right tick") {
  const std::size_t count = 1'000'000 / kSlowdown;
  weft::test::Random random(2);
  std::vector<Timer> timers(count);
  std::vector<std::int64_t> deadlines(count);
  Timers wheel(0);
  constexpr std::int64_t kSpan = 10'000 * kTick;
  for (std::size_t i = 0; i < count; ++i) {
    deadlines[i] = static_cast<std::int64_t>(random.below(kSpan));
    wheel.add(timers[i], Deadline::at_nanoseconds(deadlines[i]));
  }
  std::size_t cancelled = 0;
  for (std::size_t i = 0; i < count; i += 10) {
    wheel.cancel(timers[i]);
    deadlines[i] = -1;
    ++cancelled;
  }
  std::size_t fired = 0;
  std::size_t wrong = 0;
  for (std::int64_t now = 0; now <= kSpan + kTick; now += kTick) {
    Timer* next = nullptr;
    for (Timer* timer = wheel.expire(now); timer != nullptr; timer = next) {
      next = timer->next;
      std::int64_t& deadline = deadlines[static_cast<std::size_t>(timer - &timers[0])];
      wrong += deadline < 0 || deadline > now || deadline <= now - 2 * kTick ? 1U : 0U;
      deadline = -1;
      ++fired;
    }
  }
  CHECK(wrong == 0);
  CHECK(fired == count - cancelled);
  CHECK(wheel.next_hint().is_never());
}

// As in the scheduler, one thread adds and cancels timers, and another expires them. The claims of
// the clock and of the canceller must add up to the number of timers.
TEST_CASE("either the cancellation or the expiry of a timer wins when they race") {
  weft::test::TestGuard guard("timers race");
  const int rounds = 20'000 / static_cast<int>(kSlowdown);
  struct Wait {
    Timer timer;
    Claim claim;
  };
  std::vector<Wait> waits(static_cast<std::size_t>(rounds));
  std::vector<std::atomic<int>> fired(static_cast<std::size_t>(rounds));
  Timers wheel(0);
  std::atomic<std::int64_t> now{0};
  std::atomic<bool> done{false};
  std::thread clock([&] {
    while (!done.load()) {
      Timer* next = nullptr;
      for (Timer* timer = wheel.expire(now += kTick / 2); timer != nullptr; timer = next) {
        next = timer->next;
        ++fired[static_cast<std::size_t>(reinterpret_cast<Wait*>(timer) - &waits[0])];
      }
    }
  });
  weft::test::Random random(3);
  int notified = 0;
  for (Wait& wait : waits) {
    wait.timer.claim = &wait.claim;
    wheel.add(wait.timer, Deadline::at_nanoseconds(
                              now.load() + static_cast<std::int64_t>(random.below(2 * kTick))));
    for (std::uint64_t spins = random.below(100); spins > 0; --spins) weft::detail::pause_cpu();
    if (wait.claim.try_claim(Claim::kNotifier)) {
      ++notified;
      wheel.cancel(wait.timer);
    }
  }
  done.store(true);
  clock.join();
  int by_clock = 0;
  for (const auto& times : fired) by_clock += times.load();
  CHECK(notified + by_clock == rounds);
}

TEST_SUITE_END();

}  // namespace

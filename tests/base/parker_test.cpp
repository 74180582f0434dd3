#include "base/parker.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

namespace {

using weft::Deadline;
using weft::base::Parker;
using weft::test::kSlowdown;

TEST_SUITE_BEGIN("base/parker");

TEST_CASE("an unpark before the park makes the park return at once") {
  Parker parker;
  CHECK(!parker.unpark());
  CHECK(parker.park_until(Deadline::never()));
}

TEST_CASE("several unparks before a park let only one park return") {
  Parker parker;
  for (int i = 0; i < 5; ++i) CHECK(!parker.unpark());
  CHECK(parker.park_until(Deadline::never()));
  CHECK(!parker.park_until(Deadline::past()));
}

TEST_CASE("a park with a deadline ends at the deadline, not before") {
  Parker parker;
  for (const int microseconds : {0, 1, 100, 5000}) {
    const Deadline deadline = Deadline::after(std::chrono::microseconds(microseconds));
    CHECK(!parker.park_until(deadline));
    CHECK(deadline.passed());
  }
}

TEST_CASE("a parker has no token and no waiter after a park has timed out") {
  Parker parker;
  CHECK(!parker.park_until(Deadline::past()));
  CHECK(!parker.park_until(Deadline::past()));
  CHECK(!parker.unpark());
  CHECK(parker.park_until(Deadline::past()));
}

TEST_CASE(
    "unpark() requests an interruption only while the parker's owner is asleep outside the "
    "parker") {
  Parker parker;
  REQUIRE(parker.begin_elsewhere());
  CHECK(parker.unpark());
  CHECK(!parker.unpark());  // The first unpark has set the token.
  CHECK(parker.end_elsewhere());
  CHECK(!parker.unpark());
  CHECK(!parker.begin_elsewhere());  // begin_elsewhere() took the token.
  REQUIRE(parker.begin_elsewhere());
  CHECK(!parker.end_elsewhere());
  CHECK(!parker.park_until(Deadline::past()));
}

TEST_CASE("writes before an unpark are visible after the park that the unpark ends") {
  weft::test::TestGuard guard("parker handshake");
  const int rounds = 3'000 / static_cast<int>(kSlowdown);
  Parker ping;
  Parker pong;
  int shared = 0;  // Not atomic: sanitizers report any race.
  std::thread other([&] {
    for (int i = 0; i < rounds; ++i) {
      (void)ping.park_until(Deadline::never());
      ++shared;
      (void)pong.unpark();
    }
  });
  for (int i = 0; i < rounds; ++i) {
    ++shared;
    (void)ping.unpark();
    (void)pong.park_until(Deadline::never());
    if (shared != 2 * (i + 1)) FAIL_CHECK("round ", i, " has ", shared);
  }
  other.join();
  CHECK(shared == 2 * rounds);
}

// The unparks come at random moments around the deadline. No token is lost, so the tokens that
// parks took and the remaining tokens add up to the unparks.
TEST_CASE(
    "no unpark is lost when it races with the deadline of a park, or with a thread that begins to "
    "sleep elsewhere") {
  weft::test::TestGuard guard("parker race");
  const int rounds = 2'000 / static_cast<int>(kSlowdown);
  Parker parker;
  std::atomic<int> turn{0};
  std::thread unparker([&] {
    weft::test::Random random(1);
    for (int i = 1; i <= rounds; ++i) {
      while (turn.load() != i) std::this_thread::yield();
      for (std::uint64_t spins = random.below(300); spins > 0; --spins) {
        weft::detail::pause_cpu();
      }
      (void)parker.unpark();
      turn.store(-i);
    }
  });
  weft::test::Random random(2);
  int taken = 0;
  for (int i = 1; i <= rounds; ++i) {
    turn.store(i);
    bool unparked = false;
    if (random.one_in(3)) {
      unparked = !parker.begin_elsewhere() || parker.end_elsewhere();
    } else {
      unparked = parker.park_until(Deadline::after(std::chrono::microseconds(random.below(3))));
    }
    while (turn.load() != -i) std::this_thread::yield();
    const bool left_over = parker.park_until(Deadline::past());
    if (unparked == left_over) FAIL_CHECK("round ", i, ": both or neither");
    taken += unparked ? 1 : 0;
  }
  unparker.join();
  CHECK(taken >= 0);
}

TEST_SUITE_END();

}  // namespace

#include <weft/token_bucket.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <stop_token>
#include <vector>
#include <weft/go.hpp>
#include <weft/mutex.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/sim_test.hpp"
#include "tests/sync/callers.hpp"

namespace {

using namespace std::chrono_literals;
using weft::Deadline;
using weft::TokenBucket;
namespace sim = weft::sim;
using weft::test::run_mixed;

using Clock = Deadline::Clock;

TEST_SUITE_BEGIN("sync/token_bucket");

SIM_TEST_CASE(
    "a full token bucket grants a burst at once, and then grants tokens only at its rate") {
  TokenBucket rare({.tokens = 1, .per = 1h, .burst = 3});
  CHECK(rare.available_hint() == 3);
  CHECK(rare.try_take(2));
  rare.take();
  CHECK(rare.available_hint() == 0);
  CHECK_FALSE(rare.try_take());
  CHECK(rare.try_take(0));
  const auto begin = world.now();
  TokenBucket quick({.tokens = 2, .per = 1s, .burst = 4});
  for (int i = 0; i < 4; ++i) quick.take(3);
  // The callers took 12 tokens, of which 4 were available at the beginning.
  CHECK(world.now() - begin >= 4s);
  CHECK(world.now() - begin < 4s + 10ms);
}

SIM_TEST_CASE("a token bucket that is used for a week grants no more tokens than its rate allows") {
  TokenBucket bucket({.tokens = 100, .per = 24h, .burst = 20});
  constexpr auto kWeek = 7 * 24h;
  int taken = 0;
  while (world.now() < kWeek && bucket.take_until(Deadline::after(kWeek - world.now()))) {
    ++taken;
    // Callers come in bursts, with pauses in which the bucket fills, but never above its capacity.
    if (sim::chance(0.02)) world.run_for(std::chrono::hours(sim::random(10)));
  }
  CHECK(taken <= 7 * 100 + 20);
  CHECK(taken >= 4 * 100);
  world.run_for(300 * 24h);
  CHECK(bucket.available_hint() == 20);
  CHECK(bucket.try_take(20));
  CHECK_FALSE(bucket.try_take());
}

SIM_TEST_CASE(
    "a token bucket serves its waiters in FIFO order, and smaller demands do not overtake larger "
    "demands") {
  TokenBucket bucket({.tokens = 1, .per = 1min, .burst = 20});
  bucket.take(20);
  std::vector<int> order;
  weft::Mutex mutex;
  const auto note = [&](int number) {
    const weft::detail::Guard guard(mutex);
    order.push_back(number);
  };
  auto first = weft::spawn([&] {
    bucket.take(20);
    note(1);
  });
  sim::settle();
  auto second = weft::spawn([&] {
    bucket.take(3);
    note(2);
  });
  auto third = weft::spawn([&] {
    second.join();
    bucket.take();
    note(3);
  });
  first.join();
  third.join();
  CHECK(order == std::vector<int>{1, 2, 3});
}

SIM_TEST_CASE(
    "a deadline or a stop request ends a wait for tokens, and the next waiter gets the tokens") {
  TokenBucket bucket({.tokens = 1, .per = 1h, .burst = 10});
  bucket.take(8);
  CHECK_FALSE(bucket.take_until(Deadline::past(), 3));
  CHECK_FALSE(bucket.take_for(1min, 3));
  std::stop_source stop;
  auto first = weft::spawn([&] { return bucket.take_until(stop.get_token(), 3); });
  sim::settle();
  auto second = weft::spawn([&] { return bucket.take_until({}, 2); });
  sim::settle();
  CHECK_FALSE(bucket.try_take());
  CHECK_FALSE(bucket.take_for(1min));
  stop.request_stop();
  CHECK_FALSE(first.join());
  CHECK(second.join());
  CHECK(bucket.available_hint() == 0);
}

THREAD_TEST_CASE("fibers and plain threads share the rate of a token bucket") {
  const auto begin = Clock::now();
  TokenBucket bucket({.tokens = 10, .per = 1ms, .burst = 5});
  run_mixed(4, 2, [&](int) {
    for (int i = 0; i < 5; ++i) bucket.take(2);
  });
  // The callers took 60 tokens, of which 5 were available at the beginning.
  CHECK(Clock::now() - begin >= 5500us);
}

FIBER_TEST_CASE("a token bucket is exact at both the smallest and the largest possible rate") {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  TokenBucket large({.tokens = kMost, .per = 1ns, .burst = kMost});
  for (int i = 0; i < 3; ++i) large.take(kMost / 2);
  TokenBucket small({.tokens = 1, .per = std::chrono::nanoseconds::max(), .burst = kMost / 2});
  CHECK(small.try_take(kMost / 2));
  CHECK_FALSE(small.try_take());
  CHECK_FALSE(small.take_for(100us));
}

FIBER_TEST_CASE("a token bucket refuses invalid options, and requests that it can never satisfy") {
  CHECK_THROWS_AS(TokenBucket({.tokens = 0}), std::invalid_argument);
  CHECK_THROWS_AS(TokenBucket({.per = 0ns}), std::invalid_argument);
  CHECK_THROWS_AS(TokenBucket({.burst = 0}), std::invalid_argument);
  TokenBucket bucket({.burst = 2});
  CHECK_THROWS_AS((void)bucket.try_take(3), std::invalid_argument);
  CHECK_THROWS_AS(bucket.take(3), std::invalid_argument);
  CHECK(bucket.try_take(2));
}

TEST_SUITE_END();

}  // namespace

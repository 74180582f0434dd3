#include <weft/retry.hpp>

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <weft/go.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/sync/callers.hpp"

namespace {

using namespace std::chrono_literals;
using weft::Attempt;
using weft::Deadline;
using weft::RetryBudget;
using weft::RetryOptions;
using weft::TryAgain;
using weft::test::await_parked;

TEST_SUITE_BEGIN("sync/retry");

FIBER_TEST_CASE("retry() repeats a call until the call succeeds, and returns its result") {
  const RetryOptions options{.attempts = 5, .first_delay = 1us};
  int count = 0;
  CHECK(weft::retry(options, [&] {
          if (++count < 3) throw TryAgain("not yet");
          return std::to_string(count);
        }) == "3");
  count = 0;
  CHECK(weft::retry(options, [&] { return Attempt<int>{++count, count < 4}; }) == 4);
  count = 0;
  weft::retry(options, [&] {
    if (++count < 2) throw TryAgain("not yet");
  });
  CHECK(count == 2);
}

FIBER_TEST_CASE(
    "retry() returns the last attempt's value or throws its exception when no attempts remain") {
  const RetryOptions options{.attempts = 3, .first_delay = 1us};
  int count = 0;
  CHECK(weft::retry(options, [&] { return Attempt<int>{++count, true}; }) == 3);
  CHECK_THROWS_AS(weft::retry(options, [&] { throw TryAgain("never"); }), TryAgain);
  CHECK_THROWS_AS(
      weft::retry(options,
                  [&] {
                    ++count;
                    throw TryAgain(std::make_exception_ptr(std::out_of_range("the cause")));
                  }),
      std::out_of_range);
  CHECK(count == 6);
}

FIBER_TEST_CASE("retry() immediately throws an exception that does not request another attempt") {
  int count = 0;
  CHECK_THROWS_AS(weft::retry({.attempts = 3},
                              [&] {
                                ++count;
                                throw std::logic_error("final");
                              }),
                  std::logic_error);
  CHECK(count == 1);
}

FIBER_TEST_CASE(
    "a stop request, a deadline or the limit on the total time ends a retry's delay without "
    "another attempt") {
  const RetryOptions slow{.attempts = 100, .first_delay = 1000h, .max_delay = 1000h};
  int count = 0;
  const auto attempt = [&] { return Attempt<int>{++count, true}; };
  std::stop_source stop;
  auto stopped = weft::spawn([&] { return weft::retry_until(slow, stop.get_token(), attempt); });
  await_parked(runtime, "sleep", 1);
  stop.request_stop();
  CHECK(stopped.join() == 1);
  CHECK(weft::retry_until(slow, stop.get_token(), attempt) == 2);
  // A random delay of up to 1000 h almost certainly ends too late, so it does not begin.
  CHECK(weft::retry_until(slow, Deadline::after(1ms), attempt) == 3);
  CHECK(weft::retry({.attempts = 100, .first_delay = 1000h, .max_delay = 1000h, .total = 1ms},
                    attempt) == 4);
  CHECK(weft::retry({.attempts = 100, .first_delay = 0ns, .total = 0ns}, attempt) == 5);
}

FIBER_TEST_CASE(
    "retries of all callers use up a shared RetryBudget, and each call refills part of the "
    "budget") {
  RetryBudget budget(0.5, 3);
  const RetryOptions options{.attempts = 10, .first_delay = 1us, .budget = &budget};
  int count = 0;
  const auto attempt = [&] { return Attempt<int>{++count, true}; };
  CHECK(budget.left_hint() == 3);
  CHECK(weft::retry(options, attempt) == 4);
  CHECK(budget.left_hint() == 0);
  CHECK(weft::retry(options, attempt) == 5);
  // Two calls allow one retry.
  CHECK(weft::retry(options, attempt) == 7);
  CHECK(weft::retry(options, attempt) == 8);
  for (int i = 0; i < 100; ++i) budget.count_call();
  CHECK(budget.left_hint() == 3);
}

TEST_CASE("the upper bound of a retry's random delay doubles with each attempt up to a maximum") {
  using weft::detail::backoff_delay;
  const RetryOptions options{.first_delay = 100ns, .max_delay = 750ns};
  CHECK(backoff_delay(options, 1, UINT64_MAX) == 99ns);
  CHECK(backoff_delay(options, 2, UINT64_MAX) == 199ns);
  CHECK(backoff_delay(options, 3, UINT64_MAX / 2) == 199ns);
  CHECK(backoff_delay(options, 4, UINT64_MAX) == 749ns);
  CHECK(backoff_delay(options, UINT32_MAX, UINT64_MAX) == 749ns);
  CHECK(backoff_delay(options, 4, 0) == 0ns);
  const RetryOptions largest{.first_delay = weft::kNever, .max_delay = weft::kNever};
  CHECK(backoff_delay(largest, 1, UINT64_MAX) > weft::kNever - 10ns);
  CHECK(backoff_delay(largest, UINT32_MAX, UINT64_MAX) > weft::kNever - 10ns);
}

FIBER_TEST_CASE("retry() refuses options that are out of range") {
  const auto nothing = [] {};
  CHECK_THROWS_AS(weft::retry({.attempts = 0}, nothing), std::invalid_argument);
  CHECK_THROWS_AS(weft::retry({.first_delay = -1ns}, nothing), std::invalid_argument);
  CHECK_THROWS_AS(weft::retry({.max_delay = -1ns}, nothing), std::invalid_argument);
  CHECK_THROWS_AS(RetryBudget(-1), std::invalid_argument);
  CHECK_THROWS_AS(RetryBudget(0.1, 0), std::invalid_argument);
}

TEST_SUITE_END();

}  // namespace

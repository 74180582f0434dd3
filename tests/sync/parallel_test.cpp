#include <weft/parallel.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"

TEST_SUITE_BEGIN("sync/parallel");

FIBER_TEST_CASE(
    "for_each() visits every element exactly once, whatever the grain and the concurrency") {
  for (const std::size_t count : {0U, 1U, 2U, 3U, 63U, 64U, 1000U}) {
    for (const std::size_t grain : {0U, 1U, 7U, 5000U}) {
      for (const std::size_t concurrency : {0U, 1U, 3U, 100U}) {
        std::vector<int> visits(count);
        weft::for_each(visits, [](int& visit) { ++visit; },
                       {.max_running = concurrency, .grain = grain});
        CHECK(static_cast<std::size_t>(std::count(visits.begin(), visits.end(), 1)) == count);
      }
    }
  }
}

FIBER_TEST_CASE("a parallel loop never runs more steps at once than max_running") {
  std::vector<int> elements(200);
  std::atomic<int> running{0};
  std::atomic<bool> exceeded{false};
  weft::for_each(elements,
                 [&](int) {
                   if (++running > 5) exceeded = true;
                   weft::this_fiber::yield();
                   --running;
                 },
                 {.max_running = 5});
  CHECK_FALSE(exceeded);
}

FIBER_TEST_CASE(
    "a parallel loop throws the first exception and does not process further elements") {
  std::vector<int> elements(100000);
  std::atomic<int> visited{0};
  const auto visit = [&](int) {
    const int number = ++visited;
    if (number == 10) throw std::runtime_error("the tenth");
    // The other iterations wait for that iteration, however late it throws.
    while (number > 10 && !weft::this_fiber::context()->is_over()) weft::this_fiber::yield();
  };
  CHECK_THROWS_WITH(weft::for_each(elements, visit, {.max_running = 4}), "the tenth");
  CHECK(visited <= 10 + 3);  // Each other fiber was in at most one iteration.
}

FIBER_TEST_CASE(
    "cancelling the caller's context makes a parallel loop skip elements and throw the cause") {
  std::vector<int> elements(100000);
  std::atomic<int> visited{0};
  weft::with_timeout(std::chrono::hours(1), [&](weft::Context& context) {
    const auto visit = [&](int) {
      const int number = ++visited;
      if (number == 10) context.cancel(std::make_exception_ptr(std::runtime_error("enough")));
      while (number > 10 && !weft::this_fiber::context()->is_over()) weft::this_fiber::yield();
      return 1;
    };
    CHECK_THROWS_WITH((void)weft::transform(elements, visit, {.max_running = 4}), "enough");
    CHECK_THROWS_WITH(weft::for_each(elements, visit), "enough");
  });
  CHECK(visited <= 10 + 3);
}

FIBER_TEST_CASE("transform() returns the results in the order of their elements") {
  std::vector<int> numbers(500);
  std::iota(numbers.begin(), numbers.end(), 0);
  const auto texts = weft::transform(numbers, [](int number) {
    if (number % 3 == 0) weft::this_fiber::yield();
    return std::make_unique<std::string>(std::to_string(number));
  });
  CHECK(texts.size() == 500);
  for (int i = 0; i < 500; ++i) CHECK(*texts[static_cast<std::size_t>(i)] == std::to_string(i));
  CHECK(weft::transform(std::vector<int>{}, [](int) { return 1; }).empty());
}

THREAD_TEST_CASE("a plain thread can run parallel loops") {
  std::vector<int> numbers(100, 2);
  const auto doubled = weft::transform(numbers, [](int number) { return 2 * number; });
  CHECK(std::accumulate(doubled.begin(), doubled.end(), 0) == 400);
}

TEST_SUITE_END();

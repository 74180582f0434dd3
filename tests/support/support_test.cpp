// Tests the fixture: each of its checks must be able to fail.
#include <unistd.h>

#include <cstdlib>
#include <weft/this_fiber.hpp>

#include "tests/support/death_test.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

TEST_SUITE_BEGIN("support/fiber_test");

DEATH_TEST_CASE("a test that does not end is aborted, and the message names the test",
                "test 'endless' has not ended within") {
  setenv("WEFT_TEST_DEADLINE", "1", 1);
  const weft::test::TestGuard guard("endless");
  for (;;) pause();
}

DEATH_TEST_CASE("a test that does not end is aborted, and its fibers are shown", "sleep") {
  setenv("WEFT_TEST_DEADLINE", "1", 1);
  weft::test::TestGuard guard("endless");
  weft::Runtime runtime;
  guard.watch(&runtime);
  runtime.run([] {
    weft::go({.name = "the endless one"},
             [] { weft::this_fiber::sleep_for(std::chrono::hours(1)); });
  });
}

FIBER_TEST_CASE_WITH(
    "the body of a FIBER_TEST_CASE runs as a fiber in a runtime with the requested number of "
    "workers",
    {.workers = {3}}) {
  CHECK(weft::this_fiber::is_fiber());
  CHECK(runtime.workers() == 3);
}

THREAD_TEST_CASE("the body of a THREAD_TEST_CASE runs on a plain thread with a running runtime") {
  CHECK(!weft::this_fiber::is_fiber());
  CHECK(runtime.run([] { return weft::this_fiber::is_fiber(); }));
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("support/random");

TEST_CASE(
    "two generators of the same random stream return the same numbers, and different streams "
    "differ") {
  weft::test::Random first(1), again(1), other(2);
  CHECK(first() != other());
  (void)again();
  CHECK(first() == again());
}

TEST_SUITE_END();

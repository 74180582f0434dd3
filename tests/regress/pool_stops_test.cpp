// Stop requests that did not arrive: those of a pool at the tasks of a TaskGroup on it, and those
// of a FunctionPool's handle at the function.
#include <stop_token>
#include <weft/event.hpp>
#include <weft/function_pool.hpp>
#include <weft/pool.hpp>

#include "tests/support/fiber_test.hpp"

namespace {

using namespace weft;

TEST_SUITE_BEGIN("regress/pool_stops");

void wait_for_stop(const std::stop_token& token) {
  Event never;
  (void)never.wait_until(token);
}

FIBER_TEST_CASE("a handle of a function pool asks the running function to stop") {
  Event begun;
  FunctionPool<int, int> pool(
      [&](int n, std::stop_token token) {
        begun.set();
        wait_for_stop(token);
        return n;
      },
      {.capacity = 1});
  auto task = pool.async(5);
  begun.wait();
  CHECK(!task.cancel());
  CHECK(task.get() == 5);
  begun.reset();
  auto other = pool.async(6);
  begun.wait();
  pool.pool().close(Close::cancel);
  CHECK(other.get() == 6);
}

TEST_SUITE_END();

}  // namespace

// Regression test: a pool's stop request did not reach the tasks of a TaskGroup on that pool, and a
// FunctionPool handle's stop request did not reach the function.
#include <stop_token>
#include <weft/event.hpp>
#include <weft/function_pool.hpp>
#include <weft/pool.hpp>
#include <weft/task_group.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"

namespace {

using namespace weft;

TEST_SUITE_BEGIN("pool/stop_requests");

void wait_for_stop(const std::stop_token& token) {
  Event never;
  (void)never.wait_until(token);
}

// Both tasks wait until `stop` stops the pool.
template <class Stop>
void check_group(const PoolOptions& options, Stop stop) {
  FiberPool pool(options);
  TaskGroup group(pool);
  Event both[2];
  group.spawn([&](const std::stop_token& token) {
    both[0].set();
    wait_for_stop(token);
  });
  group.spawn([&](Context& context) {
    both[1].set();
    wait_for_stop(context.token());
  });
  for (Event& begun : both) begun.wait();
  stop(pool);
  group.join();
  CHECK(group.context().is_over());
}

FIBER_TEST_CASE("close(cancel) asks the running tasks of a group on the pool to stop") {
  check_group({.capacity = 2}, [](FiberPool& pool) { pool.close(Close::cancel); });
}

FIBER_TEST_CASE("PoolOptions::stop asks the running tasks of a group on the pool to stop") {
  std::stop_source source;
  check_group({.capacity = 2, .stop = source.get_token()},
              [&](FiberPool&) { source.request_stop(); });
}

FIBER_TEST_CASE("cancelling a handle of a FunctionPool asks the running function to stop") {
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

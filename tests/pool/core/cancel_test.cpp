#include <chrono>
#include <stop_token>
#include <weft/context.hpp>
#include <weft/pool.hpp>
#include <weft/this_fiber.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/parked.hpp"

using namespace weft;
using weft::test::await_parked;
using namespace std::chrono_literals;
using weft::test::Flag;

TEST_SUITE_BEGIN("pool/cancel");

FIBER_TEST_CASE(
    "a stop request ends a submit() call that waits for room, and the call's task never runs") {
  FiberPool pool({.capacity = 1});
  Flag hold;
  CHECK(pool.submit([&] { hold.wait(); }) == std::error_code());
  std::stop_source source;
  const std::stop_token token = source.get_token();
  auto blocked = spawn([&] { return pool.submit_until(token, [] { FAIL_CHECK("refused"); }); });
  weft::test::wait_until_true([&] { return pool.stats().blocked == 1; });
  source.request_stop();
  CHECK(blocked.join() == Errc::cancelled);
  CHECK(pool.submit_until(token, [] { FAIL_CHECK("refused"); }) == Errc::cancelled);
  CHECK(pool.stats().blocked == 0);
  CHECK(pool.stats().rejected == 2);
  hold.set();
  pool.wait_idle();
  // There is room now: a stop request ends only waits.
  CHECK(pool.submit_until(token, [] {}) == std::error_code());
}

FIBER_TEST_CASE(
    "a stop request ends waits for a task, for an idle pool and for the end of a pool") {
  FiberPool pool({.capacity = 2});
  Flag hold;
  auto task = pool.async([&] { hold.wait(); });
  Context context;
  auto of_task = spawn([&] { return task.wait_until(context); });
  auto of_idleness = spawn([&] { return pool.wait_idle_until(context); });
  auto of_end = spawn([&] { return pool.join_until(context); });
  await_parked(3);
  context.cancel();
  CHECK_FALSE(of_task.join());
  CHECK_FALSE(of_idleness.join());
  CHECK_FALSE(of_end.join());
  CHECK_FALSE(task.ready());
  hold.set();
  task.get();
}

FIBER_TEST_CASE("a task regains its slot when a stop request ends its wait for its own pool") {
  FiberPool pool({.capacity = 1, .queue_capacity = 1});
  Flag started;
  Flag hold;
  std::stop_source source;
  const std::stop_token token = source.get_token();
  auto outer = pool.async([&] {
    auto inner = pool.async([&] {
      started.set();
      hold.wait();
    });
    const bool ended = inner.wait_until(token);
    CHECK(pool.stats().busy == 1);
    return ended;
  });
  started.wait();
  await_parked(1);  // The outer task, between giving its slot back and its wait.
  source.request_stop();
  this_fiber::yield();
  CHECK_FALSE(outer.ready());  // The inner task runs in the only slot.
  hold.set();
  CHECK_FALSE(outer.get());
}

TEST_SUITE_END();

// Regression test: a task that OnFull::caller_runs ran in its caller waited for itself instead of
// getting an error.
#include <system_error>
#include <weft/event.hpp>
#include <weft/pool.hpp>

#include "tests/support/fiber_test.hpp"

namespace {

using namespace weft;

TEST_SUITE_BEGIN("pool/waits_in_caller");

void check_refused(FiberPool& pool) {
  CHECK_THROWS_AS(pool.wait_idle(), std::system_error);
  CHECK_THROWS_AS(pool.join(), std::system_error);
  CHECK_THROWS_AS((void)pool.wait_paused(), std::system_error);
  CHECK_THROWS_AS((void)pool.wait_for_completed(100), std::system_error);
}

FIBER_TEST_CASE("a task that runs inside submit() gets an error when it waits for its own pool") {
  Event hold;
  FiberPool pool({.capacity = 1, .on_full = OnFull::caller_runs});
  CHECK(pool.submit([&] { hold.wait(); }));
  bool ran = false;
  CHECK(pool.submit([&] {
    check_refused(pool);
    ran = true;
  }));
  CHECK(ran);
  hold.set();
  pool.wait_idle();  // The caller may wait afterwards.
}

THREAD_TEST_CASE(
    "a task that runs inside a plain thread's submit() gets an error when it waits for its own "
    "pool") {
  Event hold;
  FiberPool pool({.capacity = 1, .on_full = OnFull::caller_runs});
  CHECK(pool.submit([&] { hold.wait(); }));
  CHECK(pool.submit([&] { check_refused(pool); }));
  hold.set();
  pool.wait_idle();
  (void)runtime;
}

FIBER_TEST_CASE(
    "a task that runs in a worker of another pool gives that pool's slot back while waiting") {
  FiberPool outer({.capacity = 1, .queue_capacity = 10});
  Event hold;
  FiberPool inner({.capacity = 1, .on_full = OnFull::caller_runs});
  CHECK(inner.submit([&] { hold.wait(); }));
  int result = 0;
  outer.run([&] { CHECK(inner.submit([&] { result = outer.run([] { return 7; }); })); });
  CHECK(result == 7);
  hold.set();
  inner.wait_idle();
}

TEST_SUITE_END();

}  // namespace

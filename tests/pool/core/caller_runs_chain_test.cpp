// Regression test: a task that ran in submit() submitted another task to the full pool, which then
// ran in that call, and so on. This chain overflowed the stack of the first caller.
#include <functional>
#include <weft/event.hpp>
#include <weft/pool.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"

namespace {

using namespace weft;

TEST_SUITE_BEGIN("pool/caller_runs_chain");

FIBER_TEST_CASE("2 000 tasks that each run inside the previous task's submit() have enough stack") {
  Event hold;
  FiberPool pool({.capacity = 1, .on_full = OnFull::caller_runs});
  pool.go([&] { hold.wait(); });
  int depth = 0;
  int refused_waits = 0;
  std::function<void(int)> go_deeper = [&](int left) {
    ++depth;
    if (left > 0) CHECK(pool.submit([&go_deeper, left] { go_deeper(left - 1); }));
    // Each callable counts as a task of the pool, whichever stack it runs on.
    if (left % 100 == 0) {
      try {
        pool.wait_idle();
      } catch (const std::system_error& error) {
        refused_waits += error.code() == std::errc::resource_deadlock_would_occur;
      }
    }
  };
  CHECK(pool.submit([&] { go_deeper(2000); }));
  CHECK(depth == 2001);
  CHECK(refused_waits == 21);
  hold.set();
  pool.wait_idle();
}

TEST_SUITE_END();

}  // namespace

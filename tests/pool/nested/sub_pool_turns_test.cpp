// Tests which pool gets the next slot, if sub-pools and their parent share slots.
#include <vector>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"

using namespace weft;
using namespace weft::test;
using Gate = weft::test::Flag;

TEST_SUITE_BEGIN("pool/sub_pool_turns");

FIBER_TEST_CASE(
    "a long queue of a sub-pool does not prevent other tasks from using the parent's slot") {
  Gate release;
  std::vector<int> order;
  FiberPool parent({.capacity = 1, .queue_capacity = 10});
  FiberPool one({.capacity = 1, .queue_capacity = 100, .parent = &parent});
  FiberPool two({.capacity = 1, .queue_capacity = 100, .parent = &parent});
  CHECK(parent.submit([&] { release.wait(); }));
  for (int i = 0; i < 5; ++i) {
    CHECK(one.submit([&] { order.push_back(1); }));
    CHECK(two.submit([&] { order.push_back(2); }));
  }
  CHECK(parent.submit([&] { order.push_back(0); }));
  release.set();
  parent.wait_idle();
  CHECK(order == std::vector<int>{1, 2, 0, 1, 2, 1, 2, 1, 2, 1, 2});
}

FIBER_TEST_CASE(
    "tasks of a sub-pool run one after another in a drain task when no other task is waiting") {
  HeldPool held({.capacity = 1, .queue_capacity = 2});
  FiberPool pool({.capacity = 2, .queue_capacity = 10, .parent = &held.pool});
  for (int i = 0; i < 10; ++i) CHECK(pool.submit([] {}));
  held.hold.set();
  pool.wait_idle();
  CHECK(pool.stats().completed == 10);
  CHECK(pool.stats().started == 2);  // The drain tasks; the first one has run all tasks.
}

TEST_SUITE_END();

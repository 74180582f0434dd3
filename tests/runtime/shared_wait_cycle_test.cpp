// Tests fibers that wait for each other's shared mutexes.
#include <mutex>
#include <shared_mutex>
#include <stop_token>
#include <vector>
#include <weft/event.hpp>
#include <weft/mutex.hpp>
#include <weft/shared_mutex.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/parked.hpp"
#include "tests/support/wait_cycles.hpp"

namespace weft::test {

using scheduler::WaitCycle;

TEST_SUITE_BEGIN("runtime/shared_wait_cycle");

FIBER_TEST_CASE_WITH(
    "the search for wait cycles finds owners of a shared mutex that wait for each other",
    {kWithOwners}) {
  if (!can_read_memory()) return;
  SharedMutex mutex;
  Mutex other;
  Event go_on;
  WaitGroup ended;
  const auto expect_cycle = [&](std::size_t members, void (SharedMutex::*unlock)()) {
    const std::vector<WaitCycle> cycles = await_cycle();
    CHECK(cycles.size() == 1);
    CHECK(cycles.at(0).members.size() == members);
    (mutex.*unlock)();  // Unlocks for a fiber of the cycle.
    ended.wait();
    CHECK(cycles_now().empty());
  };
  // A reader locks to write; an earlier reader has left.
  std::shared_lock former(mutex);
  ended.go([&] {
    mutex.lock_shared();
    go_on.wait();
    mutex.lock();
    mutex.unlock();
  });
  await_parked(1);
  former.unlock();
  go_on.set();
  expect_cycle(1, &SharedMutex::unlock_shared);
  // A reader locks to read again, after a writer has come.
  go_on.reset();
  ended.go([&] {
    mutex.lock_shared();
    go_on.wait();
    mutex.lock_shared();
    mutex.unlock_shared();
  });
  await_parked(1);
  ended.go([&] {
    mutex.lock();
    mutex.unlock();
  });
  await_parked(2);
  CHECK(cycles_now().empty());
  go_on.set();
  expect_cycle(2, &SharedMutex::unlock_shared);
  // A writer and a reader each hold a mutex that the other one waits for.
  go_on.reset();
  ended.go([&] {
    mutex.lock();
    go_on.wait();
    other.lock();
    other.unlock();
  });
  ended.go([&] {
    other.lock();
    go_on.wait();
    mutex.lock_shared();
    mutex.unlock_shared();
    other.unlock();
  });
  await_parked(2);
  go_on.set();
  expect_cycle(2, &SharedMutex::unlock);
}

FIBER_TEST_CASE_WITH(
    "the search for wait cycles ignores a reader behind a writer if a stop request can end the "
    "writer's wait",
    {kWithOwners}) {
  if (!can_read_memory()) return;
  SharedMutex mutex;
  std::stop_source stop;
  WaitGroup ended;
  Event go_on;
  ended.go([&] {
    const std::shared_lock first(mutex);
    go_on.wait();
    const std::shared_lock second(mutex);
  });
  await_parked(1);
  ended.go([&] { CHECK_FALSE(mutex.try_lock_until(stop.get_token())); });
  await_parked(2);
  go_on.set();
  await_parked(2);
  for (int i = 0; i < 10; ++i) {
    CHECK(cycles_now().empty());
    this_fiber::yield();
  }
  stop.request_stop();
  ended.wait();
}

TEST_SUITE_END();

}  // namespace weft::test

// Regression test: a busy key whose tasks used their own pool stopped the whole pool. Tasks with
// that key took every slot that the key's holder gave back, so the holder's inner task got none.
#include <atomic>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/pool.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"

namespace {

using namespace weft;

TEST_SUITE_BEGIN("pool/keys_nested");

const int kTasks = 300 / weft::test::kSlowdown;

// Keeps the key busy with tasks that call `nested`, while a task of another key also waits.
template <class Nested>
void keep_a_key_busy(const PoolOptions& options, Nested nested) {
  FiberPool pool(options);
  std::atomic<int> done{0};
  auto feeder = spawn([&] {
    for (int i = 0; i < kTasks; ++i) {
      CHECK(pool.submit({.key = "customer"}, [&] {
        nested(pool);
        ++done;
      }));
    }
  });
  for (int i = 0; i < kTasks; ++i) CHECK(pool.run({.key = "other"}, [i] { return i; }) == i);
  feeder.join();
  pool.wait_idle();
  CHECK(done.load() == kTasks);
}

FIBER_TEST_CASE(
    "a task with a key may run another task in its own pool while other tasks wait for the key") {
  const auto nested = [](FiberPool& pool) { CHECK(pool.run([] { return 1; }) == 1); };
  keep_a_key_busy({.capacity = 8, .queue_capacity = 100}, nested);
  keep_a_key_busy({.capacity = 1, .queue_capacity = 3}, nested);
  keep_a_key_busy({.capacity = 1}, nested);
}

FIBER_TEST_CASE(
    "a task with a key may submit another task to its own pool while other tasks wait for the "
    "key") {
  const auto nested = [](FiberPool& pool) { CHECK(pool.submit([] {})); };
  keep_a_key_busy({.capacity = 8, .queue_capacity = 100}, nested);
  keep_a_key_busy({.capacity = 1, .queue_capacity = 3}, nested);
  keep_a_key_busy({.capacity = 1}, nested);
}

FIBER_TEST_CASE("submitters that need only a slot overtake a submitter whose key is in use") {
  FiberPool pool({.capacity = 2, .queue_capacity = 1});
  Event hold;
  CHECK(pool.submit({.key = 1}, [&] { hold.wait(); }));
  CHECK(pool.submit({.key = 1}, [] {}));  // Takes the queue's only place.
  CHECK(pool.try_submit({.key = 1}, [] {}) == Errc::full);
  auto behind = spawn([&] { CHECK(pool.submit({.key = 1}, [] {})); });
  while (pool.stats().blocked == 0) this_fiber::yield();
  for (int i = 0; i < 10; ++i) CHECK(pool.run([i] { return i; }) == i);
  CHECK(pool.stats().blocked == 1);
  hold.set();
  behind.join();
  pool.wait_idle();
  CHECK(pool.stats().completed == 13);
}

// Regression test: the task waited for room that tasks of a key occupied, while the holder of that
// key waited behind the task.
FIBER_TEST_CASE(
    "a task whose weight exceeds the reduced capacity starts even if other tasks wait for a key") {
  FiberPool pool({.capacity = 4, .queue_capacity = 3});
  Event others_end, holder_goes_on;
  CHECK(pool.submit({.key = 1}, [&] {
    holder_goes_on.wait();
    CHECK(pool.run([] { return 1; }) == 1);
  }));
  for (int i = 0; i < 2; ++i) CHECK(pool.submit([&] { others_end.wait(); }));
  for (int i = 0; i < 3; ++i) CHECK(pool.submit({.key = 1}, [] {}));
  auto heavy = spawn([&] { CHECK(pool.submit({.weight = 3}, [] {})); });
  while (pool.stats().blocked == 0) this_fiber::yield();
  pool.resize(2);
  others_end.set();
  while (pool.stats().completed < 2) this_fiber::yield();
  holder_goes_on.set();
  heavy.join();
  pool.wait_idle();
  CHECK(pool.stats().completed == 8);
}

FIBER_TEST_CASE(
    "the next submitter of a key is admitted when an earlier submitter stops waiting for that "
    "key") {
  FiberPool pool({.capacity = 2});
  Event hold;
  std::stop_source gives_up;
  CHECK(pool.submit({.key = 1}, [&] { hold.wait(); }));
  auto first = spawn([&] {
    CHECK(pool.submit({.key = 1, .stop = gives_up.get_token()}, [] {}) == Errc::cancelled);
  });
  while (pool.stats().blocked < 1) this_fiber::yield();
  auto second = spawn([&] { CHECK(pool.submit({.key = 1}, [] {})); });
  while (pool.stats().blocked < 2) this_fiber::yield();
  gives_up.request_stop();
  first.join();
  hold.set();
  second.join();
  pool.wait_idle();
  CHECK(pool.stats().completed == 2);
}

TEST_SUITE_END();

}  // namespace

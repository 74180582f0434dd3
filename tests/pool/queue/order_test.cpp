// Tests SubmitOptions: priorities and keys.
#include <weft/submit_options.hpp>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>
#include <weft/go.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

TEST_SUITE_BEGIN("pool/order");

FIBER_TEST_CASE(
    "tasks of higher priority start first, and tasks of equal priority start in order") {
  HeldPool held({.capacity = 1, .queue_capacity = kUnlimited});
  Record record;
  const auto submit = [&](Priority priority, int value) {
    CHECK(held.pool.submit({.priority = priority}, [&record, value] { record.add(value); }));
  };
  submit(Priority::low, 31);
  submit(Priority::normal, 21);
  CHECK(held.pool.submit([&] { record.add(22); }));  // Without options: normal.
  submit(Priority::high, 11);
  submit(Priority::normal, 23);
  submit(Priority::low, 32);
  submit(Priority::high, 12);
  CHECK(held.pool.submit([&] { record.add(24); }));
  CHECK(held.pool.stats().queued == 8);
  held.run_all();
  CHECK(record.values() == std::vector<int>{11, 12, 21, 22, 23, 24, 31, 32});
}

FIBER_TEST_CASE("a task of low priority is passed over sixteen times and then runs") {
  HeldPool held({.capacity = 1, .queue_capacity = kUnlimited});
  Record record;
  CHECK(held.pool.submit({.priority = Priority::low}, [&] { record.add(-1); }));
  for (int i = 0; i < 20; ++i) {
    CHECK(held.pool.submit({.priority = Priority::high}, [&record, i] { record.add(i); }));
  }
  held.run_all();
  const std::vector<int> order = record.values();
  CHECK(order.size() == 21);
  CHECK(order[16] == -1);
}

FIBER_TEST_CASE(
    "two tasks of different priorities run next, one after the other, when each has been passed "
    "over sixteen times") {
  HeldPool held({.capacity = 1, .queue_capacity = kUnlimited});
  Record record;
  CHECK(held.pool.submit({.priority = Priority::low}, [&] { record.add(-1); }));
  CHECK(held.pool.submit([&] { record.add(-2); }));
  for (int i = 0; i < 40; ++i) {
    CHECK(held.pool.submit({.priority = Priority::high}, [&record, i] { record.add(i); }));
  }
  held.run_all();
  const std::vector<int> order = record.values();
  CHECK(order.size() == 42);
  CHECK(order[16] == -1);  // It is not passed over a 17th time.
  CHECK(order[17] == -2);
}

FIBER_TEST_CASE(
    "tasks with the same key run in order, one at a time, and in parallel with tasks of other "
    "keys") {
  constexpr int kKeys = 5;
  constexpr int kTasks = 40;
  FiberPool pool({.capacity = 8, .queue_capacity = kUnlimited});
  std::vector<std::atomic<int>> next(kKeys);
  std::vector<std::atomic<int>> inside(kKeys);
  std::atomic<int> wrong{0};
  for (int i = 0; i < kTasks; ++i) {
    for (std::size_t key = 0; key < kKeys; ++key) {
      CHECK(pool.submit({.key = "site " + std::to_string(key)}, [&, key, i] {
        if (inside[key].fetch_add(1) != 0) ++wrong;
        if (next[key].fetch_add(1) != i) ++wrong;
        this_fiber::yield();
        inside[key].fetch_sub(1);
      }));
    }
  }
  pool.wait_idle();
  CHECK(wrong == 0);
  for (auto& count : next) CHECK(count == kTasks);
}

FIBER_TEST_CASE(
    "a key in use delays only tasks with that key, and the delayed tasks occupy no slots") {
  FiberPool pool({.capacity = 2, .queue_capacity = 10});
  weft::test::Flag hold;
  std::atomic<int> of_key{0};
  CHECK(pool.submit({.key = 7}, [&] { hold.wait(); }));
  for (int i = 0; i < 3; ++i) CHECK(pool.submit({.key = 7}, [&] { ++of_key; }));
  CHECK(pool.run([] { return 1; }) == 1);
  CHECK(pool.run({.key = 8}, [] { return 2; }) == 2);
  CHECK(of_key == 0);
  CHECK(pool.stats().queued == 3);
  hold.set();
  pool.wait_idle();
  CHECK(of_key == 3);
}

FIBER_TEST_CASE(
    "the next task of a key may start when the key's current task throws, is cancelled, or is "
    "dropped") {
  HeldPool held({.capacity = 1, .queue_capacity = 10, .on_exception = [](std::exception_ptr) {}});
  FiberPool& pool = held.pool;
  Record record;
  CHECK(pool.submit({.key = 1}, [] { throw std::runtime_error("of a key"); }));
  auto cancelled = pool.async({.key = 1}, [&] { record.add(1); });
  CHECK(pool.submit({.key = 1}, [&] { record.add(2); }));
  CHECK(cancelled.cancel());
  held.run_all();
  CHECK(record.values() == std::vector<int>{2});
  CHECK_THROWS_AS(cancelled.get(), std::system_error);
  CHECK(pool.run({.key = 1}, [] { return 3; }) == 3);
  CHECK(pool.stats().failed == 1);
  CHECK(pool.stats().cancelled == 1);
}

FIBER_TEST_CASE(
    "close(discard) drops tasks that wait for a key, and a reopened pool has no keys in use") {
  FiberPool pool({.capacity = 2, .queue_capacity = 10});
  weft::test::Flag hold;
  std::atomic<int> ran{0};
  CHECK(pool.submit({.key = 1}, [&] { hold.wait(); }));
  wait_until_true([&] { return pool.stats().busy == 1; });
  auto held_up = pool.async({.key = 1}, [&] { ++ran; });
  pool.close(Close::discard);
  CHECK(held_up.ready());
  CHECK_THROWS_AS(held_up.get(), std::system_error);
  pool.reopen();
  CHECK(pool.submit({.key = 1}, [&] { ++ran; }));  // Behind the task that still runs.
  CHECK(ran == 0);
  hold.set();
  pool.wait_idle();
  CHECK(ran == 1);
  CHECK(balanced(pool.stats()));
}

FIBER_TEST_CASE(
    "drop_oldest drops the task that has waited longest, whatever its priority and key") {
  HeldPool held({.capacity = 1, .queue_capacity = 3, .on_full = OnFull::drop_oldest});
  Record record;
  const auto submit = [&](const SubmitOptions& options, int value) {
    CHECK(held.pool.submit(options, [&record, value] { record.add(value); }));
  };
  submit({.priority = Priority::high}, 1);
  submit({.key = 5}, 2);
  submit({.key = 5}, 3);
  submit({}, 4);                           // Replaces task 1.
  submit({.key = 5}, 5);                   // Replaces task 2: task 3 has the key now.
  submit({.priority = Priority::low}, 6);  // Replaces task 3.
  CHECK(held.pool.stats().queued == 3);
  held.run_all();
  CHECK(record.values() == std::vector<int>{4, 5, 6});
  CHECK(held.pool.stats().cancelled == 3);
}

FIBER_TEST_CASE(
    "with caller_runs, submit() does not run a task whose key is in use, but waits for the key") {
  FiberPool pool({.capacity = 1, .on_full = OnFull::caller_runs});
  weft::test::Flag hold;
  Record record;
  CHECK(pool.submit({.key = 1}, [&] {
    hold.wait();
    record.add(1);
  }));
  auto second = spawn([&] { CHECK(pool.submit({.key = 1}, [&] { record.add(2); })); });
  wait_until_true([&] { return pool.stats().blocked == 1; });
  CHECK(pool.submit({.priority = Priority::high}, [&] { record.add(0); }));  // Runs here.
  hold.set();
  second.join();
  pool.wait_idle();
  CHECK(record.values() == std::vector<int>{0, 1, 2});
}

TEST_SUITE_END();

// Tests the end of a task as a case of a select.
#include <optional>
#include <system_error>
#include <vector>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/select.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

TEST_SUITE_BEGIN("pool/select");

FIBER_TEST_CASE(
    "a select on a pool task ends when the task ends, has already ended, or is cancelled") {
  FiberPool pool({.capacity = 2, .queue_capacity = 10});
  auto ended = pool.async([] { return 1; });
  ended.wait();
  int handled = 0;
  CHECK(select(on_done(ended, [&] { ++handled; }), otherwise()) == 0);
  CHECK(ended.get() == 1);

  Channel<int> gate;
  auto waits = pool.async([&] { return gate.receive().value_or(-1); });
  CHECK(select(on_done(waits), otherwise()) == 1);
  auto opener = spawn([&] { (void)gate.send(5); });
  CHECK(select(on_done(waits, [&] { ++handled; })) == 0);
  CHECK(waits.get() == 5);
  opener.join();

  Flag done;
  std::vector<PoolTask<void>> holders;
  for (int i = 0; i < 2; ++i) holders.push_back(pool.async([&] { done.wait(); }));
  auto queued = pool.async([] {});
  auto canceller = spawn([&] { CHECK(queued.cancel()); });
  CHECK(select(on_done(holders[0]), on_done(queued, [&] { ++handled; }), on_done(holders[1])) == 1);
  CHECK_THROWS_AS(queued.get(), std::system_error);
  CHECK(handled == 3);
  canceller.join();
  done.set();
  for (auto& holder : holders) holder.wait();
}

FIBER_TEST_CASE("a select never chooses a handle without a task, and a timeout ends the select") {
  FiberPool pool({.capacity = 1});
  PoolTask<int> none;
  CHECK(select(on_done(none), otherwise()) == 1);
  Flag done;
  auto waits = pool.async([&] { done.wait(); });
  CHECK(select(on_done(none), on_done(waits), on_timeout(1ms)) == 2);
  done.set();
  CHECK(select(on_done(none), on_done(waits)) == 1);
  CHECK(select(on_done(none), on_done(waits)) == 1);
}

FIBER_TEST_CASE("a task gives its slot back while it selects on other tasks of its pool") {
  FiberPool pool({.capacity = 1, .queue_capacity = kUnlimited});
  const int sum = pool.run([&] {
    auto first = pool.async([] { return 1; });
    auto second = pool.async([&] {
      auto inner = pool.async([] { return 2; });
      select(on_done(inner));
      return inner.get();
    });
    Channel<int> silent;
    bool first_done = false;
    bool second_done = false;
    while (!first_done || !second_done) {
      PoolTask<int> none;
      select(on_receive(silent, [](auto) {}),
             on_done(first_done ? none : first, [&] { first_done = true; }),
             on_done(second_done ? none : second, [&] { second_done = true; }));
    }
    return first.get() + second.get();
  });
  CHECK(sum == 3);
  CHECK(pool.stats().released == 0);
}

FIBER_TEST_CASE("a task keeps its slot during a select that never blocks") {
  bool ran = false;  // Outlives the pool, because no caller waits for its tasks.
  FiberPool pool({.capacity = 1, .queue_capacity = kUnlimited});
  pool.run([&] {
    auto queued = pool.async([&] { ran = true; });
    auto other = pool.async([] {});
    for (int i = 0; i < 10; ++i) CHECK(select(on_done(queued), on_done(other), otherwise()) == 2);
    CHECK_FALSE(ran);
    CHECK(pool.stats().released == 0);
  });
}

FIBER_TEST_CASE("running tasks never exceed the capacity when selects race with short tasks") {
  const int rounds = static_cast<int>(500 / kSlowdown);
  for (const std::size_t capacity : {1u, 3u}) {
    Concurrency gauge;
    FiberPool pool({.capacity = capacity, .queue_capacity = kUnlimited});
    std::vector<PoolTask<int>> tasks;
    for (int caller = 0; caller < 4; ++caller) {
      tasks.push_back(pool.async([&, caller] {
        Random random(static_cast<std::uint64_t>(caller));
        int ended = 0;
        for (int i = 0; i < rounds; ++i) {
          const auto work = [&] { const Concurrency::Stay stay(gauge); };
          auto one = pool.async(work);
          auto two = pool.async(work);
          const auto wait = std::chrono::nanoseconds(random.below(2000));
          if (select(on_done(one), on_done(two), on_timeout(wait)) < 2) ++ended;
          one.wait();
          two.wait();
        }
        return ended;
      }));
    }
    for (auto& task : tasks) CHECK(task.get() <= rounds);
    CHECK(gauge.most() <= capacity);
    pool.wait_idle();
    CHECK(balanced(pool.stats()));
    CHECK(pool.stats().released == 0);
  }
}

THREAD_TEST_CASE("a plain thread may select on the end of pool tasks") {
  FiberPool pool({.capacity = 2});
  Flag done;
  auto task = pool.async([&] {
    done.wait();
    return 4;
  });
  auto setter = spawn([&] { done.set(); });
  CHECK(select(on_done(task), on_done(setter)) < 2);
  CHECK(task.get() == 4);
}

TEST_SUITE_END();

// Tests OnFull::drop_oldest: the newest tasks have priority over the oldest.
#include <atomic>
#include <memory>
#include <system_error>
#include <vector>
#include <weft/go.hpp>
#include <weft/wait_group.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

namespace {

PoolOptions dropping(std::size_t capacity, std::size_t queue_capacity) {
  return {.capacity = capacity, .queue_capacity = queue_capacity, .on_full = OnFull::drop_oldest};
}

}  // namespace

TEST_SUITE_BEGIN("pool/drop_oldest");

FIBER_TEST_CASE(
    "a full pool with drop_oldest drops its oldest task and destroys the callable at once") {
  weft::test::Flag release;
  std::vector<int> ran;
  FiberPool pool(dropping(1, 3));
  CHECK(pool.submit([&] { release.wait(); }));
  wait_until_true([&] { return pool.stats().busy == 1; });
  auto held = std::make_shared<int>(0);
  CHECK(pool.submit([held] { FAIL_CHECK("it was dropped"); }));
  for (int i = 1; i <= 100; ++i) {
    CHECK(pool.submit([&ran, i] { ran.push_back(i); }));
    CHECK(held.use_count() == (i < 3 ? 2 : 1));
    CHECK(pool.stats().queued <= 3);
  }
  CHECK(pool.stats().cancelled == 98);
  release.set();
  pool.wait_idle();
  CHECK(ran == std::vector<int>{98, 99, 100});
  CHECK(balanced(pool.stats()));
}

FIBER_TEST_CASE(
    "a handle reports that its task was cancelled when drop_oldest has dropped the task") {
  weft::test::Flag release;
  FiberPool pool(dropping(1, 1));
  CHECK(pool.submit([&] { release.wait(); }));
  wait_until_true([&] { return pool.stats().busy == 1; });
  auto task = pool.async([] { FAIL_CHECK("it was dropped"); });
  auto waiter = spawn([&] { return task.wait_until(1h); });
  auto runner = spawn([&] {
    try {
      pool.run([] { FAIL_CHECK("it was dropped"); });
      return false;
    } catch (const std::system_error& error) {
      return error.code() == std::errc::operation_canceled;
    }
  });
  wait_until_true([&] { return pool.stats().cancelled == 1; });  // run() drops a task.
  CHECK(waiter.join());
  CHECK_THROWS_AS(task.get(), std::system_error);
  CHECK(pool.submit([] {}));
  CHECK(runner.join());
  release.set();
  pool.wait_idle();
  CHECK(pool.stats().completed == 2);
}

FIBER_TEST_CASE(
    "with drop_oldest, submit() drops the oldest task, try_submit() refuses the new task, and "
    "submit_until() waits") {
  weft::test::Flag release;
  std::vector<int> ran;
  FiberPool pool(dropping(1, 1));
  CHECK(pool.submit([&] { release.wait(); }));
  wait_until_true([&] { return pool.stats().busy == 1; });
  CHECK(pool.submit([&] { ran.push_back(1); }));
  CHECK(pool.try_submit([] {}) == Errc::full);
  CHECK(pool.submit_until(1ms, [] {}) == Errc::timed_out);
  auto parked = spawn([&] { return pool.submit_until(1h, [&] { ran.push_back(3); }); });
  wait_until_true([&] { return pool.stats().blocked == 1; });
  CHECK(pool.submit([&] { ran.push_back(2); }));
  CHECK(pool.stats().blocked == 1);
  release.set();
  CHECK(parked.join());
  pool.wait_idle();
  CHECK(ran == std::vector<int>{2, 3});
}

FIBER_TEST_CASE("a task may submit to its own pool when the pool is full and uses drop_oldest") {
  std::atomic<int> ran{0};
  FiberPool pool(dropping(1, 2));
  pool.run([&] {
    for (int i = 0; i < 50; ++i) CHECK(pool.submit([&] { ran.fetch_add(1); }));
  });
  pool.wait_idle();
  CHECK(ran.load() == 2);
  CHECK(pool.stats().cancelled == 48);
}

FIBER_TEST_CASE(
    "a pool drops no task while more tasks are running than a reduced capacity allows") {
  weft::test::Flag release;
  FiberPool pool(dropping(4, 1));
  for (int i = 0; i < 4; ++i) CHECK(pool.submit([&] { release.wait(); }));
  wait_until_true([&] { return pool.stats().busy == 4; });
  pool.resize(2);
  CHECK(pool.submit([] {}) == Errc::full);
  CHECK(pool.stats().rejected == 1);
  release.set();
  pool.wait_idle();
  CHECK(pool.submit([] {}));
}

FIBER_TEST_CASE(
    "every task either runs or is dropped when submitters race on a pool with drop_oldest") {
  const int each = 3000 / static_cast<int>(kSlowdown);
  for (const std::size_t queue_capacity : {1u, 3u, 100u}) {
    std::atomic<std::uint64_t> ran{0}, destroyed{0}, told{0};
    struct Counted {
      std::atomic<std::uint64_t>* count;
      explicit Counted(std::atomic<std::uint64_t>* counter) : count(counter) {}
      Counted(Counted&& other) noexcept : count(std::exchange(other.count, nullptr)) {}
      Counted& operator=(Counted&&) = delete;
      ~Counted() {
        if (count != nullptr) count->fetch_add(1);
      }
    };
    WaitGroup submitters;
    FiberPool pool(dropping(2, queue_capacity));
    submitters.add(8);
    for (int s = 0; s < 8; ++s) {
      go([&, s] {
        for (int i = 0; i < each; ++i) {
          if (s == 0) {
            try {
              pool.run([&, counted = Counted(&destroyed)] { ran.fetch_add(1); });
            } catch (const std::system_error&) {
              told.fetch_add(1);
            }
          } else {
            CHECK(pool.submit([&, counted = Counted(&destroyed)] { ran.fetch_add(1); }));
          }
          if (i % 16 == 0) this_fiber::yield();
        }
        submitters.done();
      });
    }
    submitters.wait();
    pool.wait_idle();
    const PoolStats stats = pool.stats();
    CHECK(stats.submitted == 8u * static_cast<unsigned>(each));
    CHECK(stats.completed == ran.load());
    CHECK(stats.completed + stats.cancelled == stats.submitted);
    CHECK(destroyed.load() == stats.submitted);
    CHECK(told.load() <= stats.cancelled);
  }
}

TEST_SUITE_END();

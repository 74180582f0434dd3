// Tests submitting many tasks in one call.
#include <atomic>
#include <functional>
#include <iterator>
#include <list>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>
#include <weft/go.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

namespace {

using Functions = std::vector<std::function<void()>>;

// Returns tasks that add their index to `ran`.
Functions numbered(std::vector<int>& ran, int count) {
  Functions tasks;
  for (int i = 0; i < count; ++i) tasks.emplace_back([&ran, i] { ran.push_back(i); });
  return tasks;
}
bool in_order(const std::vector<int>& ran, int count) {
  for (std::size_t i = 0; i < ran.size(); ++i) {
    if (ran[i] != static_cast<int>(i)) return false;
  }
  return ran.size() == static_cast<std::size_t>(count);
}

// Is an iterator that makes each callable when it is dereferenced.
struct Maker {
  using iterator_concept = std::input_iterator_tag;
  using difference_type = std::ptrdiff_t;
  using value_type = std::function<void()>;

  std::atomic<int>* ran = nullptr;
  int made = 0;

  value_type operator*() const {
    return [ran = ran] { ran->fetch_add(1); };
  }
  Maker& operator++() {
    ++made;
    return *this;
  }
  void operator++(int) { ++made; }
  bool operator==(const Maker&) const = default;
};

}  // namespace

TEST_SUITE_BEGIN("pool/bulk");

FIBER_TEST_CASE("submit_bulk() accepts any number of tasks, and the tasks start in order") {
  for (const int count : {0, 1, 2, 15, 16, 17, 33, 1000}) {
    for (const std::size_t queue_capacity : {0u, 1u, 20u, 2000u}) {
      std::vector<int> ran;
      FiberPool pool({.capacity = 1, .queue_capacity = queue_capacity});
      const Functions tasks = numbered(ran, count);
      CHECK(pool.submit_bulk(tasks).value == static_cast<std::size_t>(count));
      pool.wait_idle();
      CHECK(in_order(ran, count));
      CHECK(pool.stats().submitted == static_cast<std::uint64_t>(count));
      CHECK(balanced(pool.stats()));
    }
  }
}

FIBER_TEST_CASE(
    "submit_bulk() on a pool with OnFull::reject accepts as many tasks as the pool has room for") {
  weft::test::Flag release;
  std::vector<int> ran;
  FiberPool pool({.capacity = 1, .queue_capacity = 25, .on_full = OnFull::reject});
  CHECK(pool.submit([&] { release.wait(); }));
  wait_until_true([&] { return pool.stats().busy == 1; });
  CHECK(pool.submit_bulk(numbered(ran, 100)).value == 25);
  CHECK(pool.stats().queued == 25);
  CHECK(pool.stats().rejected == 1);
  release.set();
  pool.wait_idle();
  CHECK(in_order(ran, 25));
}

FIBER_TEST_CASE(
    "submit_bulk() parks until there is room, and closing the pool refuses the remaining tasks") {
  weft::test::Flag release;
  std::vector<int> ran;
  FiberPool pool({.capacity = 1, .queue_capacity = 20});
  CHECK(pool.submit([&] { release.wait(); }));
  wait_until_true([&] { return pool.stats().busy == 1; });
  auto submitter = spawn([&] { return pool.submit_bulk(numbered(ran, 100)); });
  wait_until_true([&] { return pool.stats().blocked == 1; });
  CHECK(pool.stats().queued == 20);
  pool.close(Close::drain);
  const Result<std::size_t> accepted = submitter.join();
  CHECK(accepted.value == 20);
  CHECK(accepted.error == Errc::closed);
  release.set();
  pool.join();
  CHECK(in_order(ran, 20));
  CHECK(pool.submit_bulk(numbered(ran, 3)).value == 0);
}

FIBER_TEST_CASE("submit_bulk() accepts every task when the pool uses caller_runs or drop_oldest") {
  weft::test::Flag release;
  std::atomic<int> ran{0};
  const Functions tasks(50, [&] { ran.fetch_add(1); });
  FiberPool helped({.capacity = 1, .queue_capacity = 10, .on_full = OnFull::caller_runs});
  CHECK(helped.submit([&] { release.wait(); }));
  CHECK(helped.submit_bulk(tasks).value == 50);
  CHECK(ran.load() >= 40);
  FiberPool newest({.capacity = 1, .queue_capacity = 10, .on_full = OnFull::drop_oldest});
  CHECK(newest.submit([&] { release.wait(); }));
  wait_until_true([&] { return newest.stats().busy == 1; });
  CHECK(newest.submit_bulk(tasks).value == 50);
  CHECK(newest.stats().cancelled == 40);
  release.set();
  helped.wait_idle();
  newest.wait_idle();
  CHECK(ran.load() == 60);
}

FIBER_TEST_CASE("a pool starts workers, up to its capacity, for blocking tasks of submit_bulk()") {
  weft::test::Flag release;
  weft::test::Flag again;
  Concurrency concurrency;
  FiberPool pool({.capacity = 40, .queue_capacity = 100, .idle_timeout = kNever});
  const Functions tasks(100, [&] {
    const Concurrency::Stay stay(concurrency);
    release.wait();
  });
  CHECK(pool.submit_bulk(tasks).value == 100);
  wait_until_true([&] { return concurrency.most() == 40; });
  release.set();
  pool.wait_idle();
  CHECK(concurrency.most() == 40);
  // The workers exist now and are idle, so the pool wakes as many as it needs.
  wait_until_true([&] { return pool.stats().busy == 0; });
  const Functions later(40, [&] { again.wait(); });
  CHECK(pool.submit_bulk(later).value == 40);
  wait_until_true([&] { return pool.stats().busy == 40; });
  again.set();
}

FIBER_TEST_CASE(
    "submit_bulk() accepts the callables that precede an empty callable, but no others") {
  std::vector<int> ran;
  Functions tasks = numbered(ran, 30);
  tasks[20] = nullptr;
  FiberPool pool({.capacity = 1, .queue_capacity = kUnlimited});
  CHECK(pool.submit_bulk(tasks).value == 20);
  pool.wait_idle();
  CHECK(in_order(ran, 20));
}

FIBER_TEST_CASE(
    "submit_bulk() copies callables, but moves them out of a container passed as an rvalue") {
  std::atomic<int> ran{0};
  const auto shared = std::make_shared<int>(0);
  Functions copied(20, [shared, &ran] { ran.fetch_add(1); });
  FiberPool pool({.capacity = 2, .queue_capacity = kUnlimited});
  CHECK(pool.submit_bulk(copied).value == 20);
  CHECK(copied.back() != nullptr);
  CHECK(pool.submit_bulk(std::move(copied)).value == 20);
  const auto make = [&ran](int i) {
    return [unique = std::make_unique<int>(i), &ran] { ran.fetch_add(1); };
  };
  std::list<decltype(make(0))> only_moved;
  for (int i = 0; i < 20; ++i) only_moved.push_back(make(i));
  CHECK(
      pool.submit_bulk(std::move_iterator(only_moved.begin()), std::move_sentinel(only_moved.end()))
          .value == 20);
  CHECK(pool.submit_bulk(Maker{&ran, 0}, Maker{&ran, 20}).value == 20);
  pool.wait_idle();
  CHECK(ran.load() == 80);
}

FIBER_TEST_CASE("tasks of submit_bulk() receive a stop token, and dropped tasks are destroyed") {
  const auto shared = std::make_shared<int>(0);
  std::atomic<int> stopped{0};
  FiberPool pool({.capacity = 1, .queue_capacity = 100});
  const std::vector<std::function<void(std::stop_token)>> tasks(
      30, [shared, &stopped](const std::stop_token& token) {
        while (!token.stop_requested()) this_fiber::yield();
        stopped.fetch_add(1);
      });
  CHECK(pool.submit_bulk(tasks).value == 30);
  wait_until_true([&] { return pool.stats().busy == 1; });
  pool.close(Close::cancel);
  pool.join();
  CHECK(stopped.load() == 1);
  CHECK(shared.use_count() == 31);  // The copies in `tasks`, and this one.
}

THREAD_TEST_CASE("submit_bulk() by many callers at once neither loses nor duplicates a task") {
  const std::size_t rounds = 50 / kSlowdown;
  std::atomic<std::uint64_t> ran{0};
  FiberPool pool({.capacity = 3, .queue_capacity = 40, .timings = true});
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      const Functions tasks(50, [&] { ran.fetch_add(1); });
      for (std::size_t round = 0; round < rounds; ++round)
        CHECK(pool.submit_bulk(tasks).value == 50);
    });
  }
  for (std::thread& thread : threads) thread.join();
  pool.wait_idle();
  CHECK(ran.load() == 150 * rounds);
  CHECK(pool.stats().submitted == 150 * rounds);
  CHECK(pool.timings().run_time.count() == 150 * rounds);
}

TEST_SUITE_END();

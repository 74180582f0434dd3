// Tests objects that tasks leave on the fibers of their workers: objects of per_worker(), and other
// values of FiberLocals.
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>
#include <weft/fiber_local.hpp>
#include <weft/function_pool.hpp>
#include <weft/pool.hpp>
#include <weft/this_fiber.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using Gate = weft::test::Flag;

namespace {

// Is an object of per_worker() whose destructor waits until the test lets it end.
class SlowToEnd {
 public:
  struct Books {
    std::atomic<int> alive{0};
    std::atomic<int> most{0};
    std::atomic<int> ending{0};
    Gate may_end;
  };

  explicit SlowToEnd(Books& books) : books_(books) {
    const int alive = ++books.alive;
    int most = books.most;
    while (most < alive && !books.most.compare_exchange_weak(most, alive)) {
    }
  }
  SlowToEnd(const SlowToEnd&) = delete;
  SlowToEnd& operator=(const SlowToEnd&) = delete;
  ~SlowToEnd() {
    ++books_.ending;
    books_.may_end.wait();
    --books_.alive;
  }
  int operator()(int number) { return number; }

 private:
  Books& books_;
};

// Gives a task that must not begin a chance to begin.
void yield_often() {
  for (int i = 0; i < 200; ++i) this_fiber::yield();
}

}  // namespace

TEST_SUITE_BEGIN("pool/objects");

FIBER_TEST_CASE(
    "a pool of capacity 1 starts no other worker while its worker's per-worker object is being "
    "destroyed") {
  SlowToEnd::Books books;
  {
    FunctionPool<int, int> pool(per_worker([&] { return SlowToEnd(books); }),
                                {.capacity = 1, .queue_capacity = 4, .idle_timeout = 1ms});
    CHECK(pool.process(1) == 1);
    wait_until_true([&] { return books.ending == 1; });
    CHECK(pool.pool().stats().live == 1);
    PoolTask<int> next = pool.async(2);  // The pool accepts it; the same worker runs it later.
    yield_often();
    CHECK(books.most == 1);
    CHECK(!next.ready());
    books.may_end.set();
    CHECK(next.get() == 2);
    CHECK(pool.pool().stats().started == 1);
  }
  CHECK(books.most == 1);
  CHECK(books.alive == 0);
}

FIBER_TEST_CASE(
    "a pool of capacity 2 may start another worker while a worker's per-worker object is being "
    "destroyed") {
  SlowToEnd::Books books;
  {
    FunctionPool<int, int> pool(per_worker([&] { return SlowToEnd(books); }),
                                {.capacity = 1, .queue_capacity = 4, .idle_timeout = 1ms});
    CHECK(pool.process(1) == 1);
    wait_until_true([&] { return books.ending == 1; });
    pool.pool().resize(2);
    CHECK(pool.process(2) == 2);
    wait_until_true([&] { return books.ending == 2; });
    pool.pool().resize(1);
    PoolTask<int> next = pool.async(3);
    yield_often();
    CHECK(books.most == 2);
    CHECK(!next.ready());
    books.may_end.set();
    CHECK(next.get() == 3);
  }
  CHECK(books.most == 2);
  CHECK(books.alive == 0);
}

FIBER_TEST_CASE(
    "a surplus worker counts towards the capacity until its per-worker object is destroyed") {
  SlowToEnd::Books books;
  Gate may_return;
  struct Held {
    SlowToEnd object;
    Gate& may_return;
    int operator()(int number) {
      may_return.wait();
      return object(number);
    }
  };
  FunctionPool<int, int> pool(per_worker([&] {
                                return Held{SlowToEnd(books), may_return};
                              }),
                              {.capacity = 2, .queue_capacity = 4, .idle_timeout = kNever});
  std::vector<PoolTask<int>> tasks;
  for (int i = 0; i < 2; ++i) tasks.push_back(pool.async(i));
  wait_until_true([&] { return books.alive == 2; });
  pool.pool().resize(1);
  may_return.set();
  wait_until_true([&] { return books.ending == 1; });
  CHECK(pool.pool().stats().live == 2);
  pool.pool().resize(2);
  for (int i = 2; i < 6; ++i) tasks.push_back(pool.async(i));
  for (int i = 0; i < 6; ++i) CHECK(tasks[static_cast<std::size_t>(i)].get() == i);
  CHECK(books.most == 2);
  books.may_end.set();
}

FIBER_TEST_CASE("a worker counts towards the capacity until its FiberLocal values are destroyed") {
  SlowToEnd::Books books;
  {
    const FiberLocal<std::unique_ptr<SlowToEnd>> object(
        [&] { return std::make_unique<SlowToEnd>(books); });
    FiberPool pool({.capacity = 1, .queue_capacity = 4, .idle_timeout = 1ms});
    CHECK(pool.run([&] { return (**object)(1); }) == 1);
    wait_until_true([&] { return books.ending == 1; });
    PoolTask<int> next = pool.async([&] { return (**object)(2); });
    yield_often();
    CHECK(!next.ready());
    books.may_end.set();
    CHECK(next.get() == 2);
  }
  CHECK(books.most == 1);
  CHECK(books.alive == 0);
}

FIBER_TEST_CASE("the destructor of a worker's object can wait for a task of its own pool") {
  std::atomic<int> ran{0};
  std::optional<FiberPool> pool(std::in_place, PoolOptions{.capacity = 1, .idle_timeout = 1ms});
  struct RunsAtEnd {
    FiberPool* pool;
    std::atomic<int>* ran;
    ~RunsAtEnd() {
      if (ran != nullptr) pool->run([this] { ++*ran; });
    }
  };
  // clang 14 cannot initialize an aggregate in make_unique().
  const FiberLocal<std::unique_ptr<RunsAtEnd>> object([&] {
    return std::unique_ptr<RunsAtEnd>(new RunsAtEnd{&*pool, &ran});
  });
  pool->run([&] { (void)*object; });
  wait_until_true([&] { return ran == 1; });
  CHECK(pool->run([] { return 1; }) == 1);
  wait_until_true([&] { return pool->stats().live == 0; });
  CHECK(pool->stats().retired == pool->stats().started);
}

TEST_SUITE_END();

// Regression test: if the handle of a task had been dropped, the worker destroyed the result after
// it had left its slot. A destructor that waited on its pool corrupted the counts, and a slow one
// kept a task from a free slot. Besides, the exception of such a task was lost.
#include <atomic>
#include <exception>
#include <stdexcept>
#include <utility>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/pool.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/pool_books.hpp"

namespace {

using namespace weft;

TEST_SUITE_BEGIN("pool/result_end");

// Makes a call in its destructor.
template <class Call>
class Lease {
 public:
  explicit Lease(Call& call) : call_(&call) {}
  Lease(Lease&& other) noexcept : call_(std::exchange(other.call_, nullptr)) {}
  Lease& operator=(Lease&&) = delete;
  ~Lease() {
    if (call_ != nullptr) (*call_)();
  }

 private:
  Call* call_;
};

FIBER_TEST_CASE(
    "the destructor of a result that was never read may use the pool that ran the task") {
  for (const std::size_t capacity : {1u, 4u}) {
    FiberPool pool({.capacity = capacity, .queue_capacity = 10});
    std::atomic<int> ended{0};
    auto give_back = [&] {
      pool.run([] {});
      ended.fetch_add(1);
    };
    for (int i = 0; i < 20; ++i) (void)pool.async([&] { return Lease(give_back); });
    pool.wait_idle();
    CHECK(ended.load() == 20);
    const PoolStats stats = pool.stats();
    CHECK(stats.busy + stats.released + stats.queued == 0);
    CHECK(stats.completed == 40);
    CHECK(test::balanced(stats));
    CHECK(pool.available_hint() == capacity);
    CHECK(pool.run([] { return 1; }) == 1);
  }
}

FIBER_TEST_CASE("the slow destructor of a result occupies no slot other than its task's slot") {
  FiberPool pool({.capacity = 2, .queue_capacity = 10});
  Event dropped, hold, begun;
  auto wait = [&] {
    begun.set();
    hold.wait();
  };
  // If the task ended first, the handle would destroy the result here.
  (void)pool.async([&] {
    dropped.wait();
    return Lease(wait);
  });
  dropped.set();
  begun.wait();
  CHECK(pool.stats().busy == 1);
  for (int i = 0; i < 10; ++i) CHECK(pool.run([i] { return i; }) == i);
  hold.set();
  pool.wait_idle();
  CHECK(pool.stats().busy == 0);
}

FIBER_TEST_CASE(
    "the destructor of a task's result may wait for the task's pool and for the parent pool") {
  FiberPool parent({.capacity = 2});
  FiberPool pool({.capacity = 1, .queue_capacity = 10, .parent = &parent});
  std::atomic<int> ended{0};
  auto give_back = [&] {
    pool.run([] {});
    parent.run([] {});
    ended.fetch_add(1);
  };
  for (int i = 0; i < 10; ++i) (void)pool.async([&] { return Lease(give_back); });
  pool.wait_idle();
  CHECK(ended.load() == 10);
  CHECK(test::balanced(pool.stats()));
  parent.wait_idle();
  CHECK(test::balanced(parent.stats()));
  CHECK(parent.available_hint() == 2);
}

FIBER_TEST_CASE("on_exception receives the exception of a task whose handle was dropped") {
  std::atomic<int> reported{0};
  FiberPool pool({.capacity = 1, .queue_capacity = 10, .on_exception = [&](std::exception_ptr) {
                    reported.fetch_add(1);
                  }});
  Event hold;
  CHECK(pool.submit([&] { hold.wait(); }));
  (void)pool.async([] { throw std::runtime_error("lost"); });
  auto kept = pool.async([] { throw std::runtime_error("kept"); });
  hold.set();
  CHECK_THROWS_AS(kept.get(), std::runtime_error);
  pool.wait_idle();
  CHECK(reported.load() == 1);
}

TEST_SUITE_END();

}  // namespace

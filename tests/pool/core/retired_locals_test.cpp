// Regression test: the destructor of a worker's FiberLocal value may wait for a task of the pool.
// The worker had been retired by then, and gave back a slot that it no longer had. The pool then
// counted one running task too few, and could run one too many.
#include <atomic>
#include <cstddef>
#include <weft/event.hpp>
#include <weft/fiber_local.hpp>
#include <weft/latch.hpp>
#include <weft/pool.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"

namespace {

using namespace weft;

TEST_SUITE_BEGIN("pool/retired_locals");

FIBER_TEST_CASE(
    "a retired worker has no slot to give back when its FiberLocal destructor waits for a task") {
  static std::atomic<std::size_t> busy, live;
  busy = live = 0;
  struct Kept {
    FiberPool* pool = nullptr;
    Event* is_gone = nullptr;
    ~Kept() {
      if (pool->is_closed_hint()) return;
      pool->run([this] {
        PoolStats stats = pool->stats();
        // The retired worker releases its place when it waits, which may be later.
        for (; stats.live > 1; stats = pool->stats()) this_fiber::yield();
        busy = stats.busy;
        live = stats.live;
      });
      is_gone->set();
    }
  };
  static FiberLocal<Kept> kept;
  FiberPool pool({.capacity = 2});
  Event is_gone;
  Latch both(2);
  for (int i = 0; i < 2; ++i) {
    pool.go([&] {
      kept->pool = &pool;
      kept->is_gone = &is_gone;
      both.arrive_and_wait();
    });
  }
  pool.wait_idle();
  pool.resize(1);
  is_gone.wait();
  CHECK(busy == 1);
  CHECK(live == 1);
  pool.close(Close::drain);
  pool.join();
}

TEST_SUITE_END();

}  // namespace

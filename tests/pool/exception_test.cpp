// G5: an exception never costs a worker or a slot.
#include <atomic>
#include <exception>
#include <stdexcept>
#include <string>
#include <weft/go.hpp>
#include <weft/mutex.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"

using namespace weft;
using namespace weft::test;

TEST_SUITE_BEGIN("pool/exception");

FIBER_TEST_CASE("the handler receives what a task throws") {
  std::atomic<int> numbers{0}, errors{0};
  FiberPool pool(
      {.capacity = 2, .queue_capacity = 10, .on_exception = [&](std::exception_ptr thrown) {
         try {
           std::rethrow_exception(thrown);
         } catch (int) {
           numbers.fetch_add(1);
         } catch (const std::exception& error) {
           if (error.what() == std::string("an error")) errors.fetch_add(1);
         }
       }});
  for (int i = 0; i < 10; ++i) {
    CHECK(!pool.submit([i] {
      this_fiber::yield();
      if (i % 2 == 0) throw i;
      throw std::runtime_error("an error");
    }));
  }
  pool.wait_idle();
  CHECK(numbers.load() == 5);
  CHECK(errors.load() == 5);
  CHECK(pool.stats().failed == 10);
}

FIBER_TEST_CASE("a worker survives its task's exception, and its handler's") {
  std::atomic<int> handled{0};
  FiberPool pool({.capacity = 1, .on_exception = [&](std::exception_ptr thrown) {
                    handled.fetch_add(1);
                    std::rethrow_exception(thrown);
                  }});
  for (int i = 0; i < 5; ++i) CHECK(!pool.submit([] { throw std::runtime_error("expected"); }));
  CHECK(pool.run([] { return 1; }) == 1);
  CHECK(handled.load() == 5);
  CHECK(pool.stats().started == 1);
  CHECK(pool.stats().live == 1);
}

FIBER_TEST_CASE("without a handler the exception is reported and the pool goes on") {
  FiberPool pool({.capacity = 1, .name = "test"});
  CHECK(!pool.submit([] { throw std::runtime_error("expected on stderr"); }));
  CHECK(!pool.submit([] { throw 1; }));
  CHECK(pool.run([] { return 1; }) == 1);
  CHECK(pool.stats().failed == 2);
}

FIBER_TEST_CASE("a handler may park and use the pool") {
  std::atomic<int> ran{0};
  FiberPool pool({.capacity = 2});
  FiberPool* same = &pool;
  FiberPool noisy({.capacity = 1, .on_exception = [&](std::exception_ptr) {
                     same->run([&] { ran.fetch_add(1); });
                     this_fiber::yield();
                   }});
  for (int i = 0; i < 10; ++i) CHECK(!noisy.submit([] { throw 1; }));
  noisy.wait_idle();
  CHECK(ran.load() == 10);
}

FIBER_TEST_CASE("an exception of a task that runs in its caller goes to the handler") {
  std::atomic<int> handled{0};
  Event release;
  FiberPool pool({.capacity = 1,
                  .on_full = OnFull::caller_runs,
                  .on_exception = [&](std::exception_ptr) { handled.fetch_add(1); }});
  CHECK(!pool.submit([&] { release.wait(); }));
  CHECK(!pool.submit([] { throw 1; }));
  CHECK(handled.load() == 1);
  release.set();
  pool.wait_idle();
}

TEST_SUITE_END();

// Tests G5: the pool loses no worker and no slot when a task throws.
#include <atomic>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>
#include <weft/go.hpp>
#include <weft/mutex.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"

using namespace weft;
using namespace weft::test;

TEST_SUITE_BEGIN("pool/exception");

FIBER_TEST_CASE("on_exception receives the exception of a task") {
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
    CHECK(pool.submit([i] {
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

FIBER_TEST_CASE("a worker continues after its task and on_exception have thrown exceptions") {
  std::atomic<int> handled{0};
  FiberPool pool(
      {.capacity = 1, .idle_timeout = kNever, .on_exception = [&](std::exception_ptr thrown) {
         handled.fetch_add(1);
         std::rethrow_exception(thrown);
       }});
  for (int i = 0; i < 5; ++i) CHECK(pool.submit([] { throw std::runtime_error("expected"); }));
  CHECK(pool.run([] { return 1; }) == 1);
  CHECK(handled.load() == 5);
  CHECK(pool.stats().started == 1);
  CHECK(pool.stats().live == 1);
}

FIBER_TEST_CASE("a pool without on_exception reports a task's exception and continues") {
  FiberPool pool({.capacity = 1, .name = "test"});
  CHECK(pool.submit([] { throw std::runtime_error("expected on stderr"); }));
  CHECK(pool.submit([] { throw 1; }));
  CHECK(pool.run([] { return 1; }) == 1);
  CHECK(pool.stats().failed == 2);
}

FIBER_TEST_CASE(
    "an on_exception handler with a TaskInfo receives the task's number, pool, fiber and type") {
  struct Throws {
    void operator()() const { throw 1; }
  };
  std::vector<std::uint64_t> numbers;
  std::uint64_t worker = 0;
  FiberPool pool({.capacity = 1,
                  .queue_capacity = 10,
                  .idle_timeout = kNever,
                  .on_exception =
                      [&](std::exception_ptr, const TaskInfo& task) {
                        numbers.push_back(task.number);
                        CHECK(task.pool == "thrower");
                        CHECK(task.fiber == worker);
                        CHECK(task.type != nullptr);
                        if (task.type != nullptr) CHECK(*task.type == typeid(Throws));
                      },
                  .name = "thrower"});
  CHECK(pool.submit([&] { worker = this_fiber::id(); }));
  for (int i = 0; i < 4; ++i) {
    CHECK(pool.submit(Throws()));
    CHECK(pool.submit([] { this_fiber::yield(); }));
  }
  pool.wait_idle();
  CHECK(numbers == std::vector<std::uint64_t>{2, 4, 6, 8});
}

FIBER_TEST_CASE("each task that throws has a unique number in its TaskInfo") {
  constexpr std::uint64_t kTasks = 200;
  std::vector<std::atomic<int>> seen(kTasks + 1);
  FiberPool pool({.capacity = 4,
                  .queue_capacity = 8,
                  .on_full = OnFull::caller_runs,
                  .on_exception = [&](std::exception_ptr, const TaskInfo& task) {
                    if (task.number <= kTasks) seen[task.number].fetch_add(1);
                  }});
  for (std::uint64_t i = 0; i < kTasks; ++i) CHECK(pool.submit([] { throw 1; }));
  pool.wait_idle();
  CHECK(seen[0].load() == 0);
  for (std::uint64_t i = 1; i <= kTasks; ++i) CHECK(seen[i].load() == 1);
}

FIBER_TEST_CASE("the logger receives each line of a report, and may throw") {
  std::vector<std::string> lines;
  bool logger_throws = false;
  const std::function<void(std::exception_ptr)> nobody;
  FiberPool pool({.capacity = 1,
                  .idle_timeout = kNever,
                  .on_exception = nobody,
                  .logger =
                      [&](std::string_view line) {
                        lines.emplace_back(line);
                        this_fiber::yield();
                        if (logger_throws) throw 1;
                      },
                  .name = "test"});
  CHECK(pool.submit([] { throw std::runtime_error("an error"); }));
  CHECK(pool.submit([] { throw 1; }));
  pool.wait_idle();
  CHECK(lines == std::vector<std::string>{"weft: pool 'test': a task threw: an error",
                                          "weft: pool 'test': a task threw: not a std::exception"});
  logger_throws = true;
  CHECK(pool.submit([] { throw std::runtime_error("expected on stderr"); }));
  CHECK(pool.run([] { return 1; }) == 1);
  CHECK(lines.size() == 3);
  CHECK(pool.stats().started == 1);
}

FIBER_TEST_CASE("the logger receives an exception that on_exception throws") {
  std::vector<std::string> lines;
  FiberPool pool({.capacity = 1,
                  .on_exception = [](std::exception_ptr thrown,
                                     const TaskInfo&) { std::rethrow_exception(thrown); },
                  .logger = [&](std::string_view line) { lines.emplace_back(line); },
                  .name = "test"});
  CHECK(pool.submit([] { throw std::runtime_error("an error"); }));
  pool.wait_idle();
  CHECK(lines == std::vector<std::string>{"weft: pool 'test': on_exception threw: an error"});
}

FIBER_TEST_CASE("on_exception may park and use the pool") {
  std::atomic<int> ran{0};
  FiberPool pool({.capacity = 2});
  FiberPool* same = &pool;
  FiberPool noisy({.capacity = 1, .on_exception = [&](std::exception_ptr) {
                     same->run([&] { ran.fetch_add(1); });
                     this_fiber::yield();
                   }});
  for (int i = 0; i < 10; ++i) CHECK(noisy.submit([] { throw 1; }));
  noisy.wait_idle();
  CHECK(ran.load() == 10);
}

FIBER_TEST_CASE("on_exception receives the exception of a task that runs in its caller") {
  std::atomic<int> handled{0};
  Flag release;
  FiberPool pool({.capacity = 1,
                  .on_full = OnFull::caller_runs,
                  .on_exception = [&](std::exception_ptr, const TaskInfo& task) {
                    if (task.fiber == this_fiber::id()) handled.fetch_add(1);
                  }});
  CHECK(pool.submit([&] { release.wait(); }));
  CHECK(pool.submit([] { throw 1; }));
  CHECK(handled.load() == 1);
  release.set();
  pool.wait_idle();
}

TEST_SUITE_END();

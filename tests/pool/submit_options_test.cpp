// Tests SubmitOptions: deadlines, timeouts and stop requests.
#include <weft/submit_options.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <stop_token>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/sim_test.hpp"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

TEST_SUITE_BEGIN("pool/submit_options");

SIM_TEST_CASE(
    "a task that has not started by its deadline never starts, and all waits for the task end") {
  HeldPool held({.capacity = 1, .queue_capacity = 10});
  std::atomic<int> ran{0};
  const Deadline soon = Deadline::after(1ms);
  CHECK(held.pool.submit({.deadline = soon}, [&] { ++ran; }));
  auto late = held.pool.async({.deadline = soon}, [&] { ++ran; });
  late.wait();  // The pool is still busy.
  CHECK_THROWS_WITH_AS(late.get(), doctest::Contains("timed out"), std::system_error);
  auto in_time = held.pool.async({.deadline = Deadline::after(1h)}, [&] { ++ran; });
  CHECK(soon.passed());
  held.run_all();
  in_time.get();
  CHECK(ran == 1);
  CHECK(held.pool.stats().cancelled == 2);
  CHECK(held.pool.submit({.deadline = Deadline::past()}, [] {}) == Errc::timed_out);
}

SIM_TEST_CASE(
    "submit() and submit_until() stop waiting for room at the deadline in a task's options") {
  HeldPool held({.capacity = 1});
  CHECK(held.pool.submit({.deadline = Deadline::after(1ms)}, [] {}) == Errc::timed_out);
  CHECK(held.pool.submit_until({.deadline = Deadline::after(1ms)}, Deadline::after(1h), [] {}) ==
        Errc::timed_out);
  CHECK(held.pool.submit_until({.deadline = Deadline::after(1h)}, Deadline::after(1ms), [] {}) ==
        Errc::timed_out);
  held.run_all();
}

FIBER_TEST_CASE(
    "a stop request through a task's options drops the task if it is queued, and reaches it if it "
    "is running") {
  HeldPool held({.capacity = 1, .queue_capacity = 10});
  std::stop_source before;
  std::stop_source during;
  std::atomic<int> ran{0};
  auto resource = std::make_shared<int>(1);
  auto dropped = held.pool.async({.stop = before.get_token()}, [&, resource = resource] { ++ran; });
  CHECK(held.pool.submit({.stop = before.get_token()}, [&] { ++ran; }));
  before.request_stop();
  CHECK(dropped.ready());
  CHECK(resource.use_count() == 1);
  CHECK(held.pool.submit({.stop = before.get_token()}, [] {}) == Errc::cancelled);

  weft::test::Flag begun;
  std::atomic<bool> told{false};
  CHECK(held.pool.submit({.stop = during.get_token()}, [&](std::stop_token token) {
    begun.set();
    while (!token.stop_requested()) this_fiber::yield();
    told = true;
  }));
  held.hold.set();
  begun.wait();
  during.request_stop();
  held.pool.wait_idle();
  CHECK(told);
  CHECK(ran == 0);
}

FIBER_TEST_CASE("close(cancel) asks a task that has its own stop token to stop") {
  FiberPool pool({.capacity = 1});
  std::stop_source own;
  weft::test::Flag begun;
  CHECK(pool.submit({.stop = own.get_token()}, [&](std::stop_token token) {
    begun.set();
    while (!token.stop_requested()) this_fiber::yield();
  }));
  begun.wait();
  pool.close(Close::cancel);
  pool.join();
  CHECK_FALSE(own.stop_requested());
}

SIM_TEST_CASE("a task that runs longer than its timeout gets a stop request") {
  FiberPool pool({.capacity = 2});
  const auto until_told = [](std::stop_token token) {
    while (!token.stop_requested()) this_fiber::yield();
    return 4;
  };
  CHECK(pool.run({.timeout = 1ms}, until_told) == 4);
  auto task = pool.async({.timeout = 1ms}, until_told);
  CHECK(task.get() == 4);
  CHECK(pool.submit({.timeout = 1ms}, [&](std::stop_token token) { (void)until_told(token); }));
  pool.wait_idle();
  CHECK_FALSE(
      pool.run({.timeout = 1h}, [](std::stop_token token) { return token.stop_requested(); }));
  CHECK(pool.stats().completed == 4);
}

FIBER_TEST_CASE("submit() refuses invalid options and names the option") {
  FiberPool pool({.capacity = 2});
  CHECK_THROWS_WITH_AS((void)pool.submit({.weight = 0}, [] {}), doctest::Contains("weight"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)pool.submit({.timeout = 0s}, [](std::stop_token) {}),
                       doctest::Contains("timeout"), std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)pool.async({.timeout = 1s}, [] {}), doctest::Contains("timeout"),
                       std::invalid_argument);
  CHECK(pool.submit({}, std::function<void()>()) == Errc::empty_task);
  CHECK(pool.stats().submitted == 0);
}

TEST_SUITE_END();

// Tests tasks that take a stop token, and the callers that request a stop.
#include <atomic>
#include <functional>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/wait_group.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"

using namespace weft;
using namespace std::chrono_literals;
using weft::test::balanced;
using weft::test::kSlowdown;
using weft::test::wait_until_true;

namespace {

// Runs until a stop is requested.
void until_stopped(const std::stop_token& token) {
  while (!token.stop_requested()) this_fiber::yield();
}

}  // namespace

TEST_SUITE_BEGIN("pool/stop");

FIBER_TEST_CASE("close(cancel) asks running tasks to stop and drops the queued tasks") {
  std::atomic<int> running{0}, stopped{0};
  FiberPool pool({.capacity = 3, .queue_capacity = 10});
  const auto task = [&](const std::stop_token& token) {
    running.fetch_add(1);
    until_stopped(token);
    stopped.fetch_add(1);
  };
  CHECK(pool.submit(task));
  CHECK(pool.try_submit(task));
  CHECK(pool.submit_until(1s, task));
  wait_until_true([&] { return running.load() == 3; });
  auto dropped = pool.async([](std::stop_token) { FAIL_CHECK("it was dropped"); });
  pool.close(Close::cancel);
  CHECK_THROWS_AS(dropped.get(), std::system_error);
  pool.join();
  CHECK(stopped.load() == 3);
  CHECK(pool.stats().completed == 3);
  CHECK(pool.stats().cancelled == 1);
}

FIBER_TEST_CASE(
    "close(drain) and close(discard) do not ask running tasks to stop, but a later close(cancel) "
    "does") {
  for (const Close mode : {Close::drain, Close::discard}) {
    FiberPool pool({.capacity = 1});
    std::stop_token seen = pool.stop_token();
    auto task = pool.async(until_stopped);
    wait_until_true([&] { return pool.stats().busy == 1; });
    pool.close(mode);
    CHECK_FALSE(seen.stop_requested());
    CHECK_FALSE(task.wait_until(1ms));
    pool.close(Close::cancel);
    CHECK(seen.stop_requested());
    task.get();
  }
}

FIBER_TEST_CASE("the stop token that async() or run() passes to a task ends the task's waits") {
  weft::Event never;
  FiberPool pool({.capacity = 2});
  const auto waits = [&](const std::stop_token& token) { return never.wait_until(token); };
  auto task = pool.async(waits);
  auto runner = spawn([&] { return pool.run(waits); });
  wait_until_true([&] { return pool.stats().busy == 2; });
  std::thread([&] { pool.close(Close::cancel); }).join();
  CHECK_FALSE(task.get());
  CHECK_FALSE(runner.join());
}

FIBER_TEST_CASE("a task may cancel its own pool, and the task's own token is then stopped") {
  FiberPool pool({.capacity = 1, .queue_capacity = 1});
  auto task = pool.async([&](const std::stop_token& token) {
    const bool before = token.stop_requested();
    pool.close(Close::cancel);
    return !before && token.stop_requested();
  });
  CHECK(task.get());
  pool.join();
}

FIBER_TEST_CASE("cancelling a running task requests a stop and returns false") {
  FiberPool pool({.capacity = 2, .queue_capacity = 1});
  std::atomic<int> begun{0};  // Workers count as busy slightly earlier.
  auto one = pool.async([&](const std::stop_token& token) {
    ++begun;
    until_stopped(token);
  });
  auto other = pool.async([&](const std::stop_token& token) {
    ++begun;
    until_stopped(token);
    return 7;
  });
  wait_until_true([&] { return begun.load() == 2; });
  auto queued = pool.async([](const std::stop_token&) { FAIL_CHECK("it was cancelled"); });
  CHECK(queued.cancel());
  CHECK_FALSE(one.cancel());
  one.get();
  CHECK_FALSE(other.ready());
  CHECK_FALSE(other.cancel());
  CHECK_FALSE(other.cancel());
  CHECK(other.get() == 7);
  // No other task got a stop request.
  CHECK_FALSE(pool.stop_token().stop_requested());
  pool.wait_idle();
  CHECK(pool.stats().cancelled == 1);
}

FIBER_TEST_CASE(
    "cancel() has no effect on an ended task or on a running task that takes no stop token") {
  FiberPool pool({.capacity = 1});
  weft::test::Flag hold;
  std::atomic<bool> has_begun{false};  // A worker counts as busy slightly earlier.
  auto task = pool.async([&] {
    has_begun.store(true);
    hold.wait();
  });
  wait_until_true([&] { return has_begun.load(); });
  CHECK_FALSE(task.cancel());
  hold.set();
  task.wait();
  CHECK_FALSE(task.cancel());
  task.get();
}

FIBER_TEST_CASE(
    "stop_token() returns a token with a stop request when close(cancel) precedes its first call") {
  FiberPool pool({.capacity = 1});
  pool.close(Close::cancel);
  CHECK(pool.stop_token().stop_requested());
  pool.join();
  pool.reopen();
  CHECK_FALSE(pool.stop_token().stop_requested());
}

FIBER_TEST_CASE(
    "a pool that is reopened after close(cancel) gives out stop tokens without a stop request") {
  FiberPool pool({.capacity = 2, .queue_capacity = 4});
  for (int round = 0; round < 20; ++round) {
    auto task = pool.async(until_stopped);
    const std::stop_token old = pool.stop_token();
    pool.close(Close::cancel);
    if (round % 2 == 0) pool.join();  // Otherwise the previous round's task may still run.
    pool.reopen();
    CHECK(old.stop_requested());
    CHECK_FALSE(pool.stop_token().stop_requested());
    try {
      task.get();
    } catch (const std::system_error& error) {
      CHECK(error.code() == std::errc::operation_canceled);
    }
  }
  CHECK_FALSE(pool.run([](const std::stop_token& token) { return token.stop_requested(); }));
}

FIBER_TEST_CASE("a pool refuses an empty callable that would take a stop token") {
  FiberPool pool({.capacity = 1});
  CHECK(pool.submit(std::function<void(std::stop_token)>()) == Errc::empty_task);
  CHECK_THROWS_AS(pool.run(std::function<void(std::stop_token)>()), std::system_error);
  void (*none)(std::stop_token) = nullptr;
  CHECK(pool.try_submit(none) == Errc::empty_task);
  CHECK(pool.stats().submitted == 0);
}

FIBER_TEST_CASE(
    "submitting a callable that takes a stop token moves the callable and does not copy it") {
  FiberPool pool({.capacity = 1});
  auto value = std::make_unique<int>(5);
  int seen = 0;
  CHECK(pool.submit([&seen, held = std::move(value)](std::stop_token) { seen = *held; }));
  pool.wait_idle();
  CHECK(seen == 5);
}

FIBER_TEST_CASE(
    "a stop request through PoolOptions::stop also cancels a pool that is reopened or constructed "
    "after the request") {
  std::stop_source outer;
  {
    FiberPool pool({.capacity = 1, .queue_capacity = 1, .stop = outer.get_token()});
    auto task = pool.async(until_stopped);
    wait_until_true([&] { return pool.stats().busy == 1; });
    auto queued = pool.async([] { FAIL_CHECK("it was dropped"); });
    outer.request_stop();
    CHECK(pool.is_closed_hint());
    CHECK(pool.submit([] {}) == Errc::closed);
    task.get();
    CHECK_THROWS_AS(queued.get(), std::system_error);
    pool.reopen();
    CHECK(pool.is_closed_hint());
  }
  FiberPool late({.capacity = 1, .stop = outer.get_token()});
  CHECK(late.submit([] {}) == Errc::closed);
  late.join();
  std::stop_source other;
  { const FiberPool pool({.capacity = 1, .stop = other.get_token()}); }
  other.request_stop();  // No task is left to be stopped.
}

FIBER_TEST_CASE(
    "a stop request through PoolOptions::stop is not lost when the pool is concurrently reopened "
    "or destroyed") {
  const int rounds = 100 / static_cast<int>(kSlowdown);
  for (int round = 0; round < rounds; ++round) {
    std::stop_source outer;
    auto pool = std::make_unique<FiberPool>(PoolOptions{.capacity = 2, .stop = outer.get_token()});
    pool->close(Close::drain);
    auto stopper = spawn([&] { outer.request_stop(); });
    pool->reopen();
    if (round % 2 == 0) {
      stopper.join();
      CHECK(pool->is_closed_hint());
      pool.reset();
    } else {
      pool.reset();
      stopper.join();
    }
  }
}

FIBER_TEST_CASE("every accepted task ends when close(cancel) races with submitters") {
  const int rounds = 40 / static_cast<int>(kSlowdown);
  for (int round = 0; round < rounds; ++round) {
    std::atomic<std::uint64_t> accepted{0}, ended{0};
    WaitGroup submitters;
    FiberPool pool({.capacity = 1u + static_cast<unsigned>(round % 3),
                    .queue_capacity = round % 2 == 0 ? 0u : 4u});
    submitters.add(8);
    for (int s = 0; s < 8; ++s) {
      go([&, s] {
        // Only a cancel ends some of these tasks.
        const auto task = [&, s](const std::stop_token& token) {
          if (s == 0) until_stopped(token);
          ended.fetch_add(1);
        };
        for (;;) {
          if (s % 2 == 0) {
            if (!pool.submit(task)) break;
            accepted.fetch_add(1);
            continue;
          }
          try {
            auto handle = pool.async(task);
            accepted.fetch_add(1);
            (void)handle.cancel();
          } catch (const std::system_error&) {
            break;
          }
        }
        submitters.done();
      });
    }
    wait_until_true([&] { return accepted.load() > 0; });
    pool.close(Close::cancel);
    submitters.wait();
    pool.join();
    const PoolStats stats = pool.stats();
    CHECK(balanced(stats));
    CHECK(stats.submitted == accepted.load());
    CHECK(stats.completed == ended.load());
    CHECK(stats.completed + stats.cancelled == accepted.load());
  }
}

TEST_SUITE_END();

// Tests faults while pools begin, run tasks and end.
#include <atomic>
#include <cerrno>
#include <chrono>
#include <string>
#include <system_error>
#include <vector>
#include <weft/error.hpp>
#include <weft/function_pool.hpp>
#include <weft/pool.hpp>
#include <weft/runtime.hpp>
#include <weft/task_group.hpp>
#include <weft/this_fiber.hpp>

#include "tests/faults/sweep.hpp"
#include "tests/support/fiber_test.hpp"

TEST_SUITE_BEGIN("faults/pool");

namespace {

using namespace std::chrono_literals;
using weft::test::Call;
using weft::test::demand;
using weft::test::Documented;
using weft::test::sweep;

const Documented kRefusals = {std::make_error_code(std::errc::not_enough_memory),
                              make_error_code(weft::Errc::full)};

// Checks that accepted tasks run, and that no other tasks run.
void submit(weft::PoolOptions options) {
  weft::Runtime runtime({.workers = 2});
  std::atomic<std::size_t> done{0};
  std::size_t accepted = 0;
  runtime.run([&] {
    weft::FiberPool pool(std::move(options));
    for (int i = 0; i < 20; ++i) {
      const std::error_code error =
          pool.submit([&done, text = std::string(60, 't')] { done.fetch_add(text.size() / 60); });
      if (!error) ++accepted;
      demand(!error || error == std::errc::not_enough_memory || error == weft::Errc::full,
             "a refusal says why");
    }
    pool.close(weft::Close::drain);
    pool.join();
    demand(pool.stats().completed == accepted, "the pool's books say the same");
  });
  demand(done.load() == accepted, "what was accepted has run");
}

void submit_and_block() { submit({.capacity = 3}); }
void submit_and_queue() {
  submit({.capacity = 2, .queue_capacity = weft::kUnlimited, .on_full = weft::OnFull::reject});
}
void submit_or_refuse() { submit({.capacity = 2, .on_full = weft::OnFull::reject}); }
void submit_or_run() { submit({.capacity = 2, .on_full = weft::OnFull::caller_runs}); }
void submit_prestarted() {
  submit(
      {.capacity = 3, .min_workers = 2, .prestart = true, .prealloc = true, .queue_capacity = 30});
}

TEST_CASE("a submitted task runs or is refused when an allocation fails") {
  for (const auto scenario : {&submit_and_block, &submit_and_queue, &submit_or_refuse,
                              &submit_or_run, &submit_prestarted}) {
    sweep(scenario, {{Call::allocate, ENOMEM}}, kRefusals);
  }
}
TEST_CASE("a pool runs all its tasks when a system call fails") {
  sweep(&submit_and_queue, {{Call::map, ENOMEM},
                            {Call::protect, ENOMEM},
                            {Call::futex_wait, EINTR},
                            {Call::wait_epoll, EINTR},
                            {Call::start_thread, EAGAIN}});
}

void wait_for_results() {
  weft::Runtime runtime({.workers = 2});
  runtime.run([] {
    weft::FiberPool pool({.capacity = 2, .queue_capacity = 100});
    {
      std::vector<weft::PoolTask<int>> tasks;
      for (int i = 0; i < 10; ++i) tasks.push_back(pool.async([i] { return i; }));
      int sum = 0;
      for (auto& task : tasks) sum += task.get();
      demand(sum == 45, "every task returns its number");
    }
    demand(pool.run([] { return 3; }) == 3, "a call returns");
    std::atomic<int> done{0};
    {
      weft::TaskGroup group(pool);
      for (int i = 0; i < 5; ++i) group.spawn([&done] { done.fetch_add(1); });
      group.join();
    }
    demand(done.load() == 5, "every task of the group was done");
  });
}
TEST_CASE("async() and run() return their results or throw when an allocation fails") {
  sweep(&wait_for_results, {{Call::allocate, ENOMEM}}, kRefusals);
}

// Makes calls of the pool that are each the first on their fiber, or need a new worker.
template <unsigned kWorkers>
void call_function() {
  weft::Runtime runtime({.workers = kWorkers});
  runtime.run([] {
    std::atomic<int> done{0};
    int accepted = 0;
    weft::FunctionPool<int, int> pool(
        weft::per_worker([&done] {
          return [&done](int number) {
            done.fetch_add(1);
            return number;
          };
        }),
        {.capacity = 2, .queue_capacity = 8, .on_exception = [](auto&&...) {}});
    if (pool.invoke(1)) ++accepted;
    if (pool.try_invoke(2)) ++accepted;
    if (pool.invoke_until(10s, 3)) ++accepted;
    demand(pool.process(4) == 4, "a call returns");
    demand(pool.process_until(10s, 5) == 5, "a call with a limit returns");
    demand(pool.async(6).get() == 6, "a task returns");
    pool.pool().close(weft::Close::drain);
    pool.join();
    const weft::PoolStats stats = pool.pool().stats();
    demand(stats.completed + stats.failed == static_cast<std::uint64_t>(accepted) + 3,
           "what was accepted has ended");
  });
}
TEST_CASE(
    "a FunctionPool with per_worker() ends all accepted calls or throws when an allocation fails") {
  for (const auto scenario :
       {&call_function<1>, &call_function<2>, &call_function<3>, &call_function<8>}) {
    sweep(scenario, {{Call::allocate, ENOMEM}}, kRefusals);
  }
}

void submit_with_options() {
  weft::Runtime runtime({.workers = 2});
  runtime.run([] {
    std::atomic<std::size_t> done{0};
    std::size_t accepted = 0;
    weft::FiberPool pool({.capacity = 2, .queue_capacity = 100, .timings = true});
    for (int i = 0; i < 10; ++i) {
      const weft::SubmitOptions options{
          .priority = i % 2 == 0 ? weft::Priority::high : weft::Priority::low,
          .key = weft::TaskKey(i % 3)};
      if (pool.submit(options, [&done] { done.fetch_add(1); })) ++accepted;
    }
    pool.close(weft::Close::drain);
    pool.join();
    demand(done.load() == accepted, "what was accepted has run");
  });
}
// Checks that a group keeps the first exception, which needs no allocation.
void throw_in_group() {
  weft::Runtime runtime({.workers = 2});
  runtime.run([] {
    weft::FiberPool pool({.capacity = 1});
    weft::TaskGroup group(pool);
    group.spawn([] { throw 7; });
    int thrown = 0;
    try {
      group.join();
    } catch (int number) {
      thrown = number;
    }
    demand(thrown == 7, "the group throws what its task threw");
  });
}
TEST_CASE("a group throws the exception of its task when an allocation fails") {
  sweep(&throw_in_group, {{Call::allocate, ENOMEM}}, kRefusals);
}

TEST_CASE("a task with a key and a priority runs or is refused when an allocation fails") {
  sweep(&submit_with_options, {{Call::allocate, ENOMEM}}, kRefusals);
}

// Lets a sub-pool wait in the queue of a pool that itself waits.
void wait_in_line_of_lines() {
  weft::Runtime runtime({.workers = 1});
  runtime.run([] {
    std::atomic<bool> is_held{true};
    std::atomic<std::size_t> done{0};
    weft::FiberPool grand({.capacity = 1});
    weft::FiberPool parent({.capacity = 1, .parent = &grand});
    weft::FiberPool pool({.capacity = 1, .queue_capacity = 1, .parent = &parent});
    (void)grand.submit([&] {
      while (is_held) weft::this_fiber::yield();
    });
    const bool accepted{pool.try_submit([&] { done.fetch_add(1); })};
    is_held = false;
    demand(pool.wait_idle_until(10s), "what was accepted is not stranded");
    demand(done.load() == (accepted ? 1 : 0), "what was accepted has run");
  });
}
TEST_CASE("accepted tasks of a sub-pool run even when the parent pool cannot allocate") {
  sweep(&wait_in_line_of_lines, {{Call::allocate, ENOMEM}}, kRefusals);
}
}  // namespace

TEST_SUITE_END();

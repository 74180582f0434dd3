// Faults while pools begin, run tasks and end.
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

// Accepted tasks run, and nothing else does.
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

TEST_CASE("a task is accepted and runs, or is refused, for each failing allocation") {
  for (const auto scenario : {&submit_and_block, &submit_and_queue, &submit_or_refuse,
                              &submit_or_run, &submit_prestarted}) {
    sweep(scenario, {{Call::allocate, ENOMEM}}, kRefusals);
  }
}
TEST_CASE("a pool survives any failing system call") {
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
TEST_CASE("results arrive, or the call throws, for each failing allocation") {
  sweep(&wait_for_results, {{Call::allocate, ENOMEM}}, kRefusals);
}

// Each call of the pool is a first one on its fiber, or has work for a worker of its own.
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
TEST_CASE("a call to a FunctionPool with per_worker() returns or throws when an allocation fails") {
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
// The first exception has a place of its own.
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
TEST_CASE("an exception of a group's task arrives for each failing allocation") {
  sweep(&throw_in_group, {{Call::allocate, ENOMEM}}, kRefusals);
}

TEST_CASE("tasks with keys and priorities run, or are refused, for each failing allocation") {
  sweep(&submit_with_options, {{Call::allocate, ENOMEM}}, kRefusals);
}

// A sub-pool waits in the line of a pool that has to wait itself.
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
TEST_CASE("accepted tasks of a sub-pool run even if its parent cannot allocate") {
  sweep(&wait_in_line_of_lines, {{Call::allocate, ENOMEM}}, kRefusals);
}
}  // namespace

TEST_SUITE_END();

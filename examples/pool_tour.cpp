// Shows eight ways to submit tasks to a pool. Each submits one task for each number below --tasks,
// and must arrive at the same sum. The output shows the sum and the time.
//
//   pool_tour --tasks 1000 --capacity 10 --sleep-ms 10
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <system_error>
#include <vector>
#include <weft/function_pool.hpp>
#include <weft/pool.hpp>
#include <weft/pool_set.hpp>
#include <weft/result_group.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>

#include "command_line.hpp"

namespace {

using Number = std::uint64_t;

struct Options {
  Number tasks = 1000;
  std::size_t capacity = 10;
  unsigned sleep_milliseconds = 10;
};

void check(std::error_code refused) {
  if (refused) throw std::system_error(refused);
}

// The pool may start a worker fiber for each task, so that all tasks sleep at the same time.
Number without_bound(const Options& options) {
  weft::FiberPool pool({.capacity = weft::kUnlimited});
  std::atomic<Number> sum{0};
  for (Number i = 0; i < options.tasks; ++i) {
    check(pool.submit([&, i] {
      weft::this_fiber::sleep_for(std::chrono::milliseconds(options.sleep_milliseconds));
      sum += i;
    }));
  }
  pool.wait_idle();
  return sum;
}

// If all workers are in use, submit() waits for one.
Number with_submit(const Options& options) {
  weft::FiberPool pool({.capacity = options.capacity});
  std::atomic<Number> sum{0};
  for (Number i = 0; i < options.tasks; ++i) check(pool.submit([&sum, i] { sum += i; }));
  pool.wait_idle();
  return sum;
}

// Submits many tasks in one call, which takes the pool's lock less often.
Number with_a_bulk(const Options& options) {
  weft::FiberPool pool({.capacity = options.capacity});
  std::atomic<Number> sum{0};
  const auto task = [&sum](Number i) { return [&sum, i] { sum += i; }; };
  std::vector<decltype(task(0))> tasks;
  for (Number i = 0; i < options.tasks; ++i) tasks.push_back(task(i));
  const Number accepted = pool.submit_bulk(tasks).value;
  if (accepted != options.tasks) throw std::logic_error("a task was refused");
  pool.wait_idle();
  return sum;
}

// Uses several pools side by side, each with a separate lock.
Number with_a_set(const Options& options) {
  weft::PoolSet pools(4, {.capacity = std::max<std::size_t>(1, options.capacity / 4)});
  std::atomic<Number> sum{0};
  for (Number i = 0; i < options.tasks; ++i) check(pools.submit([&sum, i] { sum += i; }));
  pools.wait_idle();
  return sum;
}

// Returns a handle for each result. The queue holds all tasks, so the caller waits only in get().
Number with_handles(const Options& options) {
  weft::FiberPool pool({.capacity = options.capacity, .queue_capacity = weft::kUnlimited});
  std::vector<weft::PoolTask<Number>> tasks;
  for (Number i = 0; i < options.tasks; ++i) tasks.push_back(pool.async([i] { return i; }));
  Number sum = 0;
  for (auto& task : tasks) sum += task.get();
  return sum;
}

// Collects the results in the order of the spawns, or rethrows the first exception.
Number with_a_group(const Options& options) {
  weft::FiberPool pool({.capacity = options.capacity});
  weft::ResultGroup<Number> group(pool);
  for (Number i = 0; i < options.tasks; ++i) group.spawn([i] { return i; });
  const std::vector<Number> results = group.join();
  return std::accumulate(results.begin(), results.end(), Number{0});
}

// One function serves all tasks: a task is its argument.
Number with_a_function(const Options& options) {
  std::atomic<Number> sum{0};
  weft::FunctionPool<Number> pool([&sum](Number i) { sum += i; }, {.capacity = options.capacity});
  for (Number i = 0; i < options.tasks; ++i) check(pool.invoke(i));
  pool.pool().wait_idle();
  return sum;
}

// Each call waits for its result, like an ordinary call.
Number with_calls(const Options& options) {
  weft::FunctionPool<Number, Number> pool([](Number i) { return i; },
                                          {.capacity = options.capacity});
  Number sum = 0;
  for (Number i = 0; i < options.tasks; ++i) sum += pool.process(i);
  return sum;
}

struct Way {
  const char* name;
  Number (*add_up)(const Options& options);
};

constexpr Way kWays[] = {
    {"submit, without a bound", without_bound},
    {"submit", with_submit},
    {"submit_bulk", with_a_bulk},
    {"submit, to a set of pools", with_a_set},
    {"async", with_handles},
    {"a ResultGroup", with_a_group},
    {"a FunctionPool: invoke", with_a_function},
    {"a FunctionPool: process", with_calls},
};

int run(const Options& options) {
  const Number expected = options.tasks * (options.tasks - 1) / 2;
  weft::run([&] {
    for (const Way& way : kWays) {
      const auto start = std::chrono::steady_clock::now();
      const Number sum = way.add_up(options);
      const std::chrono::duration<double, std::milli> took =
          std::chrono::steady_clock::now() - start;
      if (sum != expected) throw std::logic_error(fmt::format("{}: {}", way.name, sum));
      fmt::print("{:<26}{:>12}{:>12.3f} ms\n", way.name, sum, took.count());
    }
  });
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  examples::CommandLine line("pool_tour",
                             "Adds up the numbers below a limit in a pool, in several ways.");
  line.add("--tasks", options.tasks, 1, 10'000'000, "tasks, one for each number");
  line.add("--capacity", options.capacity, 1, 1'000'000,
           "tasks that run at once, where there is a bound");
  line.add("--sleep-ms", options.sleep_milliseconds, 0, 60'000,
           "how long each takes without a bound");
  return line.run(argc, argv, [&] { return run(options); });
}

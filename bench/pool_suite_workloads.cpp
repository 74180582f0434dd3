// P: the benchmarks of goroutine pools, published by their authors. bench/README.md lists them.
#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <system_error>
#include <vector>
#include <weft/function_pool.hpp>
#include <weft/go.hpp>
#include <weft/ordered_stream.hpp>
#include <weft/parallel.hpp>
#include <weft/pool_set.hpp>
#include <weft/semaphore.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "bench/pool_runner.hpp"
#include "bench/workload.hpp"

namespace weft::bench {

namespace {

constexpr std::size_t kSleeping = 50'000;  // The capacity in the suite of the goroutine pool
                                           // "ants".

void nap() { this_fiber::sleep_for(std::chrono::milliseconds(10)); }

[[nodiscard]] bool is_bare(const Request& request) { return request.pool == "bare"; }

// The times that a job of timing_run() records.
struct JobTimes {
  std::atomic<int> in_work{0};
  std::atomic<std::int64_t> finished{0};
  std::atomic<double> first_ms{0};
  std::atomic<double> sum_ms{0};
};

void timed_job(JobTimes& times, Clock::time_point start) {
  const auto begun = Clock::now();
  times.in_work.fetch_add(1);
  this_fiber::sleep_for(std::chrono::milliseconds(100));
  times.in_work.fetch_sub(1);
  times.sum_ms.fetch_add(milliseconds_since(begun));
  if (times.finished.fetch_add(1) == 0) times.first_ms = milliseconds_since(start);
}

// Counts running jobs every 20 ms, as the article does, until all jobs have ended. Returns the
// highest count.
int watch(const JobTimes& times, std::int64_t jobs) {
  int most = 0;
  while (times.finished.load() < jobs) {
    most = std::max(most, times.in_work.load());
    this_fiber::sleep_for(std::chrono::milliseconds(20));
  }
  return most;
}

}  // namespace

Metrics timing_run(const Request& request) {
  constexpr int kWorkers = 5;
  const auto jobs = static_cast<std::int64_t>(request.count(100));
  JobTimes times;
  // Bare fibers have no built-in cap.
  Semaphore places(is_bare(request) ? kWorkers : kUnlimited / 2);
  WaitGroup group;
  WaitGroup watcher;
  int most = 0;
  const auto start = Clock::now();
  Runner runner(request, kWorkers, request.count(100));
  watcher.go([&] { most = watch(times, jobs); });
  group.add(static_cast<std::size_t>(jobs));
  for (std::int64_t i = 0; i < jobs; ++i) {
    runner.submit([&] {
      places.acquire();
      timed_job(times, start);
      places.release();
      group.done();
    });
  }
  group.wait();
  const double total = milliseconds_since(start);
  watcher.wait();
  if (most > kWorkers) throw std::runtime_error("more jobs in work than workers");
  const auto rounds = (jobs + kWorkers - 1) / kWorkers;
  return {{"first_ms", times.first_ms},
          {"average_ms", times.sum_ms / static_cast<double>(jobs)},
          {"total_ms", total},
          {"overshoot_ms", total - static_cast<double>(rounds) * 100},
          {"most_wip", most}};
}

Metrics submit_sleeps(const Request& request) {
  const std::size_t count = request.count(1'000'000);
  WaitGroup group;
  Runner runner(request, request.count(kSleeping), count);
  group.add(count);
  const auto start = Clock::now();
  for (std::size_t i = 0; i < count; ++i) {
    runner.submit([&group] {
      nap();
      group.done();
    });
  }
  const double elapsed = nanoseconds_since(start);
  group.wait();
  return {{"ns_per_submit", elapsed / static_cast<double>(count)}};
}

Metrics submit_sleeps_in_parallel(const Request& request) {
  const std::size_t share = std::max<std::size_t>(1, request.count(1'000'000) / request.workers);
  WaitGroup tasks;
  WaitGroup submitters;
  Runner runner(request, request.count(kSleeping), request.count(1'000'000));
  tasks.add(share * request.workers);
  const auto start = Clock::now();
  for (unsigned i = 0; i < request.workers; ++i) {
    submitters.go([&] {
      for (std::size_t k = 0; k < share; ++k) {
        runner.submit([&tasks] {
          nap();
          tasks.done();
        });
      }
    });
  }
  submitters.wait();
  const double elapsed = nanoseconds_since(start);
  tasks.wait();
  return {{"ns_per_submit", elapsed / static_cast<double>(share * request.workers)}};
}

Metrics sharded_sleeps(const Request& request) {
  constexpr std::size_t kShards = 10;
  const std::size_t count = request.count(1'000'000);
  WaitGroup group;
  const auto start = Clock::now();
  std::unique_ptr<PoolSet> pools;
  if (request.pool == "fiber_pool") {
    const std::size_t each = std::max<std::size_t>(1, request.count(kSleeping) / kShards);
    pools = std::make_unique<PoolSet>(kShards, PoolOptions{.capacity = each});
  }
  group.add(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto task = [&group] {
      nap();
      group.done();
    };
    if (pools == nullptr) {
      go(task);
    } else if (const std::error_code error = pools->submit(task)) {
      throw std::system_error(error);
    }
  }
  group.wait();
  return {{"ms", milliseconds_since(start)}};
}

Metrics users_and_tasks(const Request& request, std::size_t users, GridTask task) {
  const std::size_t all = request.count(1'000'000);
  users = std::min(users, all);
  const std::size_t each = all / users;
  const auto body = task == GridTask::sleep ? nap : [] {};
  WaitGroup group;
  const auto start = Clock::now();
  Runner runner(request, request.count(200'000), all);
  group.add(users * each);
  for (std::size_t user = 0; user < users; ++user) {
    go([&runner, &group, body, each] {
      for (std::size_t k = 0; k < each; ++k) {
        runner.submit([&group, body] {
          body();
          group.done();
        });
      }
    });
  }
  group.wait();
  return {{"ms", milliseconds_since(start)}};
}

Metrics pool_start_and_end(const Request& request) {
  const double per_pool = per_unit(request.count(50'000), [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      WaitGroup group;
      group.add(1);
      Runner runner(request, 10, 0);
      runner.submit([&group] { group.done(); });
      group.wait();
    }
  });
  return {{"ns_per_pool", per_pool}};
}

Metrics pool_tasks(const Request& request) {
  const double per_task = per_unit(request.count(1'000'000), [&](std::size_t count) {
    Runner runner(request, 10, 0);
    WaitGroup group;
    group.add(count);
    for (std::size_t i = 0; i < count; ++i) {
      runner.submit([&group] { group.done(); });
    }
    group.wait();
  });
  return {{"ns_per_task", per_task}};
}

Metrics stream_tasks(const Request& request) {
  constexpr std::size_t kLimit = 10;
  std::int64_t next = 0;
  const auto take = [&next](std::int64_t result) { expect("result", result, next++); };
  const auto with_stream = [&](std::int64_t count) {
    OrderedStream<std::int64_t> stream(kLimit, take);
    for (std::int64_t i = 0; i < count; ++i) (void)stream.submit([i] { return i; });
    stream.finish();
  };
  const auto with_handles = [&](std::int64_t count) {
    Channel<JoinHandle<std::int64_t>> handles(kLimit);
    WaitGroup taker;
    taker.go([&] {
      for (auto& handle : handles) take(handle.join());
    });
    for (std::int64_t i = 0; i < count; ++i) (void)handles.send(weft::spawn([i] { return i; }));
    handles.close();
    taker.wait();
  };
  const double per_task = per_unit(request.count(500'000), [&](std::size_t all) {
    const auto count = static_cast<std::int64_t>(all);
    next = 0;
    is_bare(request) ? with_handles(count) : with_stream(count);
    expect("number of results", next, count);
  });
  return {{"ns_per_task", per_task}};
}

Metrics loop_over(const Request& request, std::size_t elements) {
  std::vector<int> values(elements);
  const auto with_fibers = [&values] {
    WaitGroup group;
    group.add(values.size());
    for (int& value : values) {
      go([&group, &value] {
        ++value;
        group.done();
      });
    }
    group.wait();
  };
  const std::size_t full = std::min<std::size_t>(500'000, 5'000'000 / std::max(elements, 1UL));
  std::size_t calls = 0;
  const double per_call = per_unit(request.count(full), [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      is_bare(request) ? with_fibers() : for_each(values, [](int& value) { ++value; });
    }
    calls += count;
  });
  const auto sum = std::accumulate(values.begin(), values.end(), std::int64_t{0});
  expect("sum", sum, static_cast<std::int64_t>(calls * elements));
  return {{"ns_per_call", per_call}};
}

Metrics round_trips(const Request& request) {
  constexpr std::size_t kWorkers = 10;
  using Number = std::int64_t;
  const auto measure = [&request](auto call) {
    const double per_call = per_unit(request.count(500'000), [&](std::size_t count) {
      Number value = 0;
      for (std::size_t i = 0; i < count; ++i) value = call(value);
      expect("number of calls", value, static_cast<Number>(count));
    });
    return Metrics{{"ns_per_call", per_call}};
  };
  if (request.pool == "function_pool") {
    FunctionPool<Number, Number> pool([](Number value) { return value + 1; },
                                      {.capacity = kWorkers});
    return measure([&pool](Number value) { return pool.process(value); });
  }
  if (is_bare(request)) {
    return measure([](Number value) {
      WaitGroup group;
      group.go([&value] { ++value; });
      group.wait();
      return value;
    });
  }
  FiberPool pool({.capacity = kWorkers});
  return measure([&pool](Number value) { return pool.run([value] { return value + 1; }); });
}

}  // namespace weft::bench

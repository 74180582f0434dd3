// W8: the fiber pool, and bare fibers for comparison.
#include <atomic>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "bench/pool_runner.hpp"
#include "bench/workload.hpp"

namespace weft::bench {

Metrics pool_batches(const Request& request) {
  constexpr std::size_t kBatch = 100;
  Runner runner(request, 5, 10);
  const double per_batch = per_unit(request.count(20'000), [&](std::size_t batches) {
    for (std::size_t i = 0; i < batches; ++i) {
      WaitGroup group;
      group.add(kBatch);
      for (std::size_t k = 0; k < kBatch; ++k) {
        runner.submit([&group] { group.done(); });
      }
      group.wait();
    }
  });
  return {{"us_per_batch", per_batch / 1e3}};
}

Metrics pool_adds(const Request& request) {
  const std::size_t count = request.count(1'000'000);
  std::atomic<std::int64_t> counter{0};
  WaitGroup group;
  const auto start = Clock::now();
  Runner runner(request, 20, 0);
  group.add(count);
  for (std::size_t i = 0; i < count; ++i) {
    runner.submit([&group, &counter] {
      for (int k = 0; k < kAddsPerTask; ++k) counter.fetch_add(1);
      group.done();
    });
  }
  group.wait();
  const double elapsed = milliseconds_since(start);
  expect("counter", counter, static_cast<std::int64_t>(count) * kAddsPerTask);
  return {{"ms", elapsed}};
}

Metrics pool_sleeps(const Request& request) {
  const std::size_t count = request.count(1'000'000);
  WaitGroup group;
  const auto start = Clock::now();
  Runner runner(request, request.count(50'000), 0);
  group.add(count);
  for (std::size_t i = 0; i < count; ++i) {
    runner.submit([&group] {
      this_fiber::sleep_for(std::chrono::milliseconds(10));
      group.done();
    });
  }
  group.wait();
  return {{"ms", milliseconds_since(start)}};
}

Metrics pool_no_ops(const Request& request, std::size_t submitters) {
  constexpr std::size_t kCapacity = 1000;
  Runner runner(request, kCapacity, kCapacity);
  const double per_task = per_unit(request.count(2'000'000), [&](std::size_t count) {
    const std::size_t share = std::max<std::size_t>(1, count / submitters);
    WaitGroup group;
    group.add(share * submitters + submitters);
    for (std::size_t i = 0; i < submitters; ++i) {
      go([&runner, &group, share] {
        for (std::size_t k = 0; k < share; ++k) {
          runner.submit([&group] { group.done(); });
        }
        group.done();
      });
    }
    group.wait();
  });
  return {{"ns_per_task", per_task}};
}

}  // namespace weft::bench

// The Boost.Fiber side of the comparison: one workload per process, one JSON line of results.
//
// Every choice is the fastest one that the library offers for the row:
//   - round_robin on one worker, work stealing on more;
//   - stacks from malloc, configured to keep freed memory, which it otherwise returns to the kernel
//     after every batch. Boost's stack pool is faster with few fibers. But it writes to every stack
//     when it grows, which slows floods down, and it is not thread-safe: a stolen fiber returns its
//     stack on another thread than the one that took the stack;
//   - idle workers spin. With the suspending form of work stealing, nothing wakes a suspended
//     worker when another worker gets work, so only one worker would compute;
//   - trees are spawned with launch::dispatch: depth-first order needs far fewer live stacks. The
//     floods use launch::post: with dispatch, no two of their fibers would be alive at once.

#include <algorithm>
#include <atomic>
#include <boost/fiber/all.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "bench/rivals/program.hpp"
#include "deadlines.hpp"
#include "fiber_parts.hpp"
#include "latencies.hpp"

namespace {

using namespace rivals;

constexpr std::int64_t kBatch = 100;
constexpr std::int64_t kAddsPerTask = 100;

// ---- Workloads

Metrics spawn_batches(const Request& request) {
  WaitGroup group;
  const auto run = [&](std::int64_t batches) {
    for (std::int64_t batch = 0; batch < batches; ++batch) {
      group.add(kBatch);
      for (std::int64_t i = 0; i < kBatch; ++i) {
        spawn(fibers::launch::post, [&] { group.done(); }).detach();
      }
      group.wait();
    }
  };
  const std::int64_t batches = std::max<std::int64_t>(1, request.count(2'000'000) / kBatch);
  return {{"ns_per_fiber", per_unit(batches, run) / kBatch}};
}

Metrics flood(const Request& request, std::int64_t adds) {
  const std::int64_t count = request.count(1'000'000);
  refuse_if_short_of_memory(count);
  std::atomic<std::int64_t> counter{0};
  WaitGroup group;
  const auto body = [&counter, &group, adds] {
    // Relaxed: the counter publishes no other data, and the wait group orders it before the check
    // below.
    for (std::int64_t i = 0; i < adds; ++i) counter.fetch_add(1, std::memory_order_relaxed);
    group.done();
  };
  const double ms = milliseconds([&] {
    group.add(count);
    for (std::int64_t i = 0; i < count; ++i) spawn(fibers::launch::post, body).detach();
    group.wait();
  });
  expect("counter", counter.load(std::memory_order_relaxed), count * adds);
  return {{"ms", ms}};
}

Metrics flood_adds(const Request& request) { return flood(request, kAddsPerTask); }

Metrics flood_empty(const Request& request) { return flood(request, 0); }

Metrics yield_pair(const Request& request) {
  if (request.workers != 1) throw Refusal("W2 is defined on one worker.");
  const auto run = [](std::int64_t rounds) {
    const auto body = [rounds] {
      for (std::int64_t i = 0; i < rounds; ++i) boost::this_fiber::yield();
    };
    fibers::fiber one = spawn(fibers::launch::post, body);
    fibers::fiber other = spawn(fibers::launch::post, body);
    one.join();
    other.join();
  };
  return {{"ns_per_switch", per_unit(request.count(5'000'000), run) / 2}};
}

Metrics ping_pong(const Request& request) {
  fibers::unbuffered_channel<std::int64_t> ping;
  fibers::unbuffered_channel<std::int64_t> pong;
  fibers::fiber echo = spawn(fibers::launch::post, [&] {
    for (std::int64_t value : ping) pong.push(value);
  });
  const auto run = [&](std::int64_t trips) {
    for (std::int64_t trip = 0; trip < trips; ++trip) {
      ping.push(trip);
      pong.value_pop();
    }
  };
  const double ns = per_unit(request.count(1'000'000), run);
  ping.close();
  echo.join();
  return {{"ns_per_round_trip", ns}};
}

Metrics buffered_items(const Request& request) {
  const std::int64_t count = request.count(5'000'000);
  std::int64_t sum = 0;
  const auto run = [&](std::int64_t items) {
    sum = 0;
    fibers::buffered_channel<std::int64_t> channel(128);
    fibers::fiber consumer = spawn(fibers::launch::post, [&] {
      for (std::int64_t item : channel) sum += item;
    });
    for (std::int64_t item = 0; item < items; ++item) channel.push(item);
    channel.close();
    consumer.join();
  };
  const double ns = per_unit(count, run);
  expect("sum", sum, count * (count - 1) / 2);
  return {{"ns_per_item", ns}};
}

Metrics contended_mutex(const Request& request) {
  constexpr std::int64_t kFibers = 8;
  const std::int64_t count = request.count(500'000);
  fibers::mutex mutex;
  std::int64_t counter = 0;
  const auto run = [&](std::int64_t each) {
    counter = 0;
    std::vector<fibers::fiber> group;
    for (std::int64_t i = 0; i < kFibers; ++i) {
      group.push_back(spawn(fibers::launch::post, [&mutex, &counter, each] {
        for (std::int64_t j = 0; j < each; ++j) {
          std::unique_lock lock(mutex);
          ++counter;
        }
      }));
    }
    for (fibers::fiber& fiber : group) fiber.join();
  };
  const double ns = per_unit(count, run) / kFibers;
  expect("counter", counter, count * kFibers);
  return {{"ns_per_op", ns}};
}

using Sums = fibers::buffered_channel<std::int64_t>;

void skynet_node(Sums& result, std::int64_t first, std::int64_t leaves) {
  if (leaves == 1) {
    result.push(first);
    return;
  }
  constexpr std::int64_t kChildren = 10;
  const std::int64_t part = leaves / kChildren;
  Sums sums(16);  // A power of two that holds all children, as in Boost's own skynet example.
  for (std::int64_t child = 0; child < kChildren; ++child) {
    spawn(fibers::launch::dispatch, [&sums, start = first + child * part, part] {
      skynet_node(sums, start, part);
    }).detach();
  }
  std::int64_t sum = 0;
  for (std::int64_t child = 0; child < kChildren; ++child) sum += sums.value_pop();
  result.push(sum);
}

Metrics skynet(const Request& request) {
  const std::int64_t leaves = scaled_leaves(request);
  refuse_if_short_of_memory(leaves);
  std::int64_t sum = 0;
  const double ms = milliseconds([&] {
    Sums result(2);
    spawn(fibers::launch::dispatch, [&] { skynet_node(result, 0, leaves); }).detach();
    sum = result.value_pop();
  });
  expect("sum", sum, leaves * (leaves - 1) / 2);
  return {{"ms", ms}};
}

// A fiber counts itself just before it parks; the pause lets the last fibers park before the memory
// is read. Neither measured time includes the pause.
Metrics park_and_wake(const Request& request, std::int64_t full) {
  const std::int64_t count = request.count(full);
  refuse_if_short_of_memory(count);
  fibers::unbuffered_channel<int> gate;
  WaitGroup group;
  std::atomic<std::int64_t> counted{0};
  const auto body = [&] {
    counted.fetch_add(1, std::memory_order_relaxed);  // It publishes no other data.
    int ignored = 0;
    gate.pop(ignored);
    group.done();
  };
  const double before = kernel_bytes("/proc/self/status", "VmRSS");
  const double create = milliseconds([&] {
    group.add(count);
    for (std::int64_t i = 0; i < count; ++i) spawn(fibers::launch::post, body).detach();
    while (counted.load(std::memory_order_relaxed) < count) boost::this_fiber::yield();
  });
  boost::this_fiber::sleep_for(std::chrono::milliseconds(200));
  const double bytes = kernel_bytes("/proc/self/status", "VmRSS") - before;
  const double wake = milliseconds([&] {
    gate.close();
    group.wait();
  });
  return {{"bytes_per_fiber", bytes / static_cast<double>(count)},
          {"create_ms", create},
          {"wake_ms", wake}};
}

Metrics sleepers(const Request& request, std::int64_t full, int naps) {
  const std::int64_t count = request.count(full);
  refuse_if_short_of_memory(count);
  WaitGroup group;
  const auto body = [&group, naps] {
    for (int nap = 0; nap < naps; ++nap) {
      boost::this_fiber::sleep_for(std::chrono::milliseconds(10));
    }
    group.done();
  };
  return {{"ms", milliseconds([&] {
             group.add(count);
             for (std::int64_t i = 0; i < count; ++i) spawn(fibers::launch::post, body).detach();
             group.wait();
           })}};
}

std::int64_t fib(int n) {
  if (n < 2) return n;
  std::int64_t first = 0;
  fibers::fiber child = spawn(fibers::launch::dispatch, [&first, n] { first = fib(n - 1); });
  const std::int64_t second = fib(n - 2);
  child.join();
  return first + second;
}

Metrics fork_join_fib(const Request& request) {
  const int n = scaled_fib(request);
  std::int64_t value = 0;
  const double ms = milliseconds([&] { value = fib(n); });
  expect_fib(n, value);
  return {{"ms", ms}};
}

Metrics no_select(const Request&) {
  throw Refusal("Boost.Fiber has nothing that waits for one of several channels.");
}

enum class StackSource { pool, malloc };

using Run = std::function<Metrics(const Request&)>;

// With one worker, the row selects the source of the stacks; with more, it is always malloc.
Metrics with_workers(const Request& request, StackSource stacks, const Run& run) {
  fibers::pooled_fixedsize_stack pool(kStackBytes);
  if (request.workers == 1 && stacks == StackSource::pool) stack_pool = &pool;
  mallopt(M_TRIM_THRESHOLD, -1);  // Never trim.
  const StealingWorkers workers(request.workers);
  return run(request);
}

struct BoostWorkload {
  std::string_view name;
  StackSource stacks;
  Run run;
};

const std::vector<BoostWorkload>& workloads() {
  static const std::vector<BoostWorkload> all{
      {"W1", StackSource::pool, spawn_batches},
      {"W1b_adds", StackSource::malloc, flood_adds},
      {"W1b_empty", StackSource::malloc, flood_empty},
      {"W2", StackSource::pool, yield_pair},
      {"W3_pingpong", StackSource::pool, ping_pong},
      {"W3_buffered", StackSource::pool, buffered_items},
      {"W4", StackSource::pool, contended_mutex},
      {"W5", StackSource::malloc, skynet},
      {"W6_100k", StackSource::malloc, [](const Request& r) { return park_and_wake(r, 100'000); }},
      {"W6_1m", StackSource::malloc, [](const Request& r) { return park_and_wake(r, 1'000'000); }},
      {"W7_100k", StackSource::malloc, [](const Request& r) { return sleepers(r, 100'000, 10); }},
      {"W7_1m", StackSource::malloc, [](const Request& r) { return sleepers(r, 1'000'000, 1); }},
      {"W7b", StackSource::malloc, deadlines_met},
      {"W10", StackSource::malloc, fork_join_fib},
      {"W11_idle", StackSource::pool, wake_idle},
      {"W11_mixed", StackSource::pool, mixed_load},
      {"W12_ready", StackSource::pool, no_select},
      {"W12_becomes_ready", StackSource::pool, no_select},
  };
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  Program program{"boost_fiber", "Boost.Fiber", {}};
  for (const auto& [name, stacks, run] : workloads()) {
    program.workloads.push_back({name, [&, stacks = stacks](const Request& request) {
                                   return with_workers(request, stacks, run);
                                 }});
  }
  return exit_code_of(program, argc, argv);
}

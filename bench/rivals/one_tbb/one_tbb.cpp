// The oneTBB side of the comparison: one workload per process, one JSON line of results.
//
// oneTBB's tasks have no separate stacks and can wait only for other tasks, so only the rows that
// need nothing more are here. Each row uses a task_group, the simplest interface and the fastest
// for these rows. The number of workers limits an arena and the whole process.

#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <atomic>

#include "bench/rivals/program.hpp"

namespace {

using namespace rivals;

constexpr std::int64_t kBatch = 100;
constexpr std::int64_t kAddsPerTask = 100;

Metrics spawn_batches(const Request& request) {
  const auto run = [](std::int64_t batches) {
    tbb::task_group group;
    for (std::int64_t batch = 0; batch < batches; ++batch) {
      for (std::int64_t i = 0; i < kBatch; ++i) group.run([] {});
      group.wait();
    }
  };
  const std::int64_t batches = std::max<std::int64_t>(1, request.count(2'000'000) / kBatch);
  return {{"ns_per_fiber", per_unit(batches, run) / kBatch}};
}

Metrics flood(const Request& request, std::int64_t adds) {
  const std::int64_t count = request.count(1'000'000);
  std::atomic<std::int64_t> counter{0};
  const double ms = milliseconds([&] {
    tbb::task_group group;
    for (std::int64_t i = 0; i < count; ++i) {
      group.run([&counter, adds] {
        // Relaxed: the counter publishes no other data, and the group's end orders it before the
        // check below.
        for (std::int64_t k = 0; k < adds; ++k) counter.fetch_add(1, std::memory_order_relaxed);
      });
    }
    group.wait();
  });
  expect("counter", counter.load(std::memory_order_relaxed), count * adds);
  return {{"ms", ms}};
}

// Uses no channels: a node waits for its children's tasks, which return their sums.
std::int64_t skynet_node(std::int64_t first, std::int64_t leaves) {
  if (leaves == 1) return first;
  constexpr std::int64_t kChildren = 10;
  const std::int64_t part = leaves / kChildren;
  std::int64_t sums[kChildren];
  tbb::task_group group;
  for (std::int64_t child = 0; child < kChildren; ++child) {
    group.run([&sum = sums[child], start = first + child * part, part] {
      sum = skynet_node(start, part);
    });
  }
  group.wait();
  std::int64_t sum = 0;
  for (const std::int64_t of_child : sums) sum += of_child;
  return sum;
}

Metrics skynet(const Request& request) {
  const std::int64_t leaves = scaled_leaves(request);
  std::int64_t sum = 0;
  const double ms = milliseconds([&] { sum = skynet_node(0, leaves); });
  expect("sum", sum, leaves * (leaves - 1) / 2);
  return {{"ms", ms}};
}

std::int64_t fib(int n) {
  if (n < 2) return n;
  std::int64_t first = 0;
  tbb::task_group group;
  group.run([&first, n] { first = fib(n - 1); });
  const std::int64_t second = fib(n - 2);
  group.wait();
  return first + second;
}

Metrics fork_join_fib(const Request& request) {
  const int n = scaled_fib(request);
  std::int64_t value = 0;
  const double ms = milliseconds([&] { value = fib(n); });
  expect_fib(n, value);
  return {{"ms", ms}};
}

template <class Run>
auto in_arena(Run run) {
  return [run](const Request& request) {
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
                                    static_cast<std::size_t>(request.workers));
    return tbb::task_arena(request.workers).execute([&] { return run(request); });
  };
}

}  // namespace

int main(int argc, char** argv) {
  const auto adds = [](const Request& request) { return flood(request, kAddsPerTask); };
  const auto empty = [](const Request& request) { return flood(request, 0); };
  const Program program{"one_tbb",
                        "oneTBB",
                        {{"W1", in_arena(spawn_batches)},
                         {"W1b_adds", in_arena(adds)},
                         {"W1b_empty", in_arena(empty)},
                         {"W5", in_arena(skynet)},
                         {"W10", in_arena(fork_join_fib)}}};
  return exit_code_of(program, argc, argv);
}

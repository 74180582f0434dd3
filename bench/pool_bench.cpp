// Measures what a pool costs in addition to a bare fiber.
#include <weft/go.hpp>
#include <weft/pool.hpp>
#include <weft/wait_group.hpp>

#include "bench/fiber_benchmark.hpp"

namespace weft::bench {
namespace {

constexpr std::int64_t kBatch = 100;

template <class Submit>
void batches(benchmark::State& state, Submit submit) {
  for (auto _ : state) {
    WaitGroup group;
    group.add(kBatch);
    for (std::int64_t i = 0; i < kBatch; ++i) submit([&group] { group.done(); });
    group.wait();
  }
  state.SetItemsProcessed(state.iterations() * kBatch);
}

void bare_batches(benchmark::State& state) {
  in_fiber(state, [&] { batches(state, [](auto task) { go(std::move(task)); }); });
}
WEFT_FIBER_BENCHMARK(bare_batches);

// Uses 5 workers and range(1) places in the queue, as the worker-pool article does.
void pooled_batches(benchmark::State& state) {
  in_fiber(state, [&] {
    PoolOptions options;
    options.capacity = 5;
    options.queue_capacity = static_cast<std::size_t>(state.range(1));
    FiberPool pool(options);
    batches(state, [&pool, &state](auto task) {
      if (!pool.submit(std::move(task))) state.SkipWithError("the pool refused a task");
    });
  });
}
BENCHMARK(pooled_batches)
    ->ArgNames({"workers", "queue"})
    ->ArgsProduct({{1, 2}, {0, 10, 1000}})
    ->UseRealTime();

// Measures one caller that waits for each result.
void run_and_wait(benchmark::State& state) {
  in_fiber(state, [&] {
    PoolOptions options;
    options.capacity = 10;
    FiberPool pool(options);
    for (auto _ : state) benchmark::DoNotOptimize(pool.run([] { return 1; }));
  });
}
WEFT_FIBER_BENCHMARK(run_and_wait);

void start_and_end(benchmark::State& state) {
  in_fiber(state, [&] {
    for (auto _ : state) {
      FiberPool pool;
      if (!pool.submit([] {})) state.SkipWithError("the pool refused a task");
    }
  });
}
WEFT_FIBER_BENCHMARK(start_and_end);

}  // namespace
}  // namespace weft::bench

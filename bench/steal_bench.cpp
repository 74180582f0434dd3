// Measures how well the work that one fiber starts is spread over the workers.
#include <weft/go.hpp>
#include <weft/wait_group.hpp>

#include "bench/fiber_benchmark.hpp"

namespace weft::bench {
namespace {

// Runs 64 fibers that compute for about range(1) microseconds each. With long computations, two
// workers should need half the time of one worker; with short ones, no more time than one worker.
void spread_computation(benchmark::State& state) {
  constexpr int kFibers = 64;
  const std::int64_t steps = state.range(1) * 250;
  in_fiber(state, [&] {
    for (auto _ : state) {
      WaitGroup group;
      group.add(kFibers);
      for (int i = 0; i < kFibers; ++i) {
        go([&group, steps] {
          std::uint64_t value = 1;
          for (std::int64_t k = 0; k < steps; ++k) {
            value = value * 6364136223846793005ULL + 1;
            benchmark::DoNotOptimize(value);
          }
          group.done();
        });
      }
      group.wait();
    }
  });
  state.SetItemsProcessed(state.iterations() * kFibers);
}
BENCHMARK(spread_computation)
    ->ArgNames({"workers", "us"})
    ->ArgsProduct({{1, 2}, {1, 10, 100}})
    ->UseRealTime();

}  // namespace
}  // namespace weft::bench

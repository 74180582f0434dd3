// Measures the cost of starting a fiber, running it and waiting for its end.
#include <array>
#include <weft/go.hpp>
#include <weft/wait_group.hpp>

#include "bench/fiber_benchmark.hpp"

namespace weft::bench {
namespace {

constexpr std::int64_t kBatch = 100;

void go_and_wait_group(benchmark::State& state) {
  in_fiber(state, [&] {
    for (auto _ : state) {
      WaitGroup group;
      group.add(kBatch);
      for (std::int64_t i = 0; i < kBatch; ++i) {
        go([&group] { group.done(); });
      }
      group.wait();
    }
  });
  state.SetItemsProcessed(state.iterations() * kBatch);
}
WEFT_FIBER_BENCHMARK(go_and_wait_group);

void spawn_and_join(benchmark::State& state) {
  in_fiber(state, [&] {
    for (auto _ : state) benchmark::DoNotOptimize(spawn([] { return 1; }).join());
  });
  state.SetItemsProcessed(state.iterations());
}
WEFT_FIBER_BENCHMARK(spawn_and_join);

// Measures the same as go_and_wait_group, with a closure that does not fit into the fiber's record.
template <std::size_t kBytes>
void go_closure(benchmark::State& state) {
  in_fiber(state, [&] {
    const std::array<char, kBytes> payload{};
    for (auto _ : state) {
      WaitGroup group;
      group.add(kBatch);
      for (std::int64_t i = 0; i < kBatch; ++i) {
        go([&group, payload] {
          benchmark::DoNotOptimize(payload.data());
          group.done();
        });
      }
      group.wait();
    }
  });
  state.SetItemsProcessed(state.iterations() * kBatch);
}
void go_medium_closure(benchmark::State& state) { go_closure<48>(state); }
WEFT_FIBER_BENCHMARK(go_medium_closure);
void go_large_closure(benchmark::State& state) { go_closure<256>(state); }
WEFT_FIBER_BENCHMARK(go_large_closure);

}  // namespace
}  // namespace weft::bench

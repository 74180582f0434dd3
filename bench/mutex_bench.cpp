// Measures the cost of mutual exclusion, with and without contention.
#include <mutex>
#include <weft/go.hpp>
#include <weft/mutex.hpp>
#include <weft/wait_group.hpp>

#include "bench/fiber_benchmark.hpp"

namespace weft::bench {
namespace {

template <class Lockable>
void uncontended(benchmark::State& state) {
  in_fiber(state, [&] {
    Lockable mutex;
    for (auto _ : state) {
      const std::lock_guard guard(mutex);
      benchmark::ClobberMemory();
    }
  });
}
BENCHMARK(uncontended<Mutex>)->ArgName("workers")->Arg(1)->UseRealTime();
BENCHMARK(uncontended<std::mutex>)->ArgName("workers")->Arg(1)->UseRealTime();

void eight_fibers(benchmark::State& state) {
  constexpr std::int64_t kFibers = 8;
  constexpr std::int64_t kLocks = 1000;
  in_fiber(state, [&] {
    Mutex mutex;
    std::int64_t counter = 0;
    for (auto _ : state) {
      WaitGroup group;
      group.add(kFibers);
      for (std::int64_t i = 0; i < kFibers; ++i) {
        go([&] {
          for (std::int64_t k = 0; k < kLocks; ++k) {
            const std::lock_guard guard(mutex);
            ++counter;
          }
          group.done();
        });
      }
      group.wait();
    }
    benchmark::DoNotOptimize(counter);
  });
  state.SetItemsProcessed(state.iterations() * kFibers * kLocks);
}
WEFT_FIBER_BENCHMARK(eight_fibers);

}  // namespace
}  // namespace weft::bench

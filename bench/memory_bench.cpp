// Measures the memory of a fiber that has not started, and of a parked fiber.
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "bench/fiber_benchmark.hpp"
#include "bench/process_memory.hpp"

namespace weft::bench {
namespace {

void report(benchmark::State& state, double bytes, std::int64_t fibers) {
  state.counters["bytes_per_fiber"] = bytes / static_cast<double>(fibers);
}

void unstarted(benchmark::State& state) {
  in_fiber(state, [&] {
    const std::int64_t fibers = state.range(1);
    for (auto _ : state) {
      const double before = process_memory("VmRSS");
      WaitGroup group;
      group.add(static_cast<std::uint64_t>(fibers));
      // The only worker starts none of these fibers before this fiber waits.
      for (std::int64_t i = 0; i < fibers; ++i) {
        go([&group] { group.done(); });
      }
      report(state, process_memory("VmRSS") - before, fibers);
      group.wait();
    }
  });
}
BENCHMARK(unstarted)->ArgNames({"workers", "fibers"})->Args({1, 1'000'000})->Iterations(1);

void parked(benchmark::State& state) {
  in_fiber(state, [&] {
    const std::int64_t fibers = state.range(1);
    for (auto _ : state) {
      const double before = process_memory("VmRSS");
      Channel<int> gate;
      WaitGroup group;
      group.add(static_cast<std::uint64_t>(fibers));
      std::int64_t arrived = 0;
      for (std::int64_t i = 0; i < fibers; ++i) {
        go([&] {
          ++arrived;
          benchmark::DoNotOptimize(gate.receive());
          group.done();
        });
      }
      while (arrived < fibers) this_fiber::yield();
      report(state, process_memory("VmRSS") - before, fibers);
      gate.close();
      group.wait();
    }
  });
}
BENCHMARK(parked)->ArgNames({"workers", "fibers"})->Args({1, 100'000})->Iterations(1);

}  // namespace
}  // namespace weft::bench

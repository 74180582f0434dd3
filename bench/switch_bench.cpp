// Measures the cost of a switch from one fiber to another.
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>

#include "bench/fiber_benchmark.hpp"

namespace weft::bench {
namespace {

void yield_between_two(benchmark::State& state) {
  in_fiber(state, [&] {
    bool stop = false;
    auto partner = spawn([&stop] {
      while (!stop) this_fiber::yield();
    });
    for (auto _ : state) this_fiber::yield();
    stop = true;
    partner.join();
  });
  // The partner answers each yield of the main fiber with a yield.
  state.SetItemsProcessed(2 * state.iterations());
}
// The benchmark uses one worker: with two, each fiber could run without a switch.
BENCHMARK(yield_between_two)->ArgName("workers")->Arg(1)->UseRealTime();

void yield_alone(benchmark::State& state) {
  in_fiber(state, [&] {
    for (auto _ : state) this_fiber::yield();
  });
}
BENCHMARK(yield_alone)->ArgName("workers")->Arg(1)->UseRealTime();

}  // namespace
}  // namespace weft::bench

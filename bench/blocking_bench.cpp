// Measures the cost of a call on a helper thread.
#include <weft/blocking.hpp>

#include "bench/fiber_benchmark.hpp"

namespace weft::bench {
namespace {

// Measures a round trip with a callable that does nothing, which is the price of not blocking the
// worker.
void blocking_round_trip(benchmark::State& state) {
  in_fiber(state, [&] {
    for (auto _ : state) blocking([] {});
  });
}
WEFT_FIBER_BENCHMARK(blocking_round_trip);

}  // namespace
}  // namespace weft::bench

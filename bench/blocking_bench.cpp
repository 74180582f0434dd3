// What does a call on a helper thread cost?
#include <weft/blocking.hpp>

#include "bench/fiber_benchmark.hpp"

namespace weft::bench {
namespace {

// There and back, with a callable that does nothing: what it costs not to block the worker.
void blocking_round_trip(benchmark::State& state) {
  in_fiber(state, [&] {
    for (auto _ : state) blocking([] {});
  });
}
WEFT_FIBER_BENCHMARK(blocking_round_trip);

}  // namespace
}  // namespace weft::bench

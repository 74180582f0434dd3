// Runs Google Benchmark from a fiber.
#pragma once

#include <benchmark/benchmark.h>

#include <utility>
#include <weft/runtime.hpp>

namespace weft::bench {

// Runs `body` as the main fiber of a runtime with state.range(0) workers; `body` contains the loop
// over `state`. Register benchmarks with WEFT_FIBER_BENCHMARK, which sets that argument and the
// clock.
template <class Body>
void in_fiber(benchmark::State& state, Body body) {
  RuntimeOptions options;
  options.workers = static_cast<unsigned>(state.range(0));
  run(options, [&] { body(); });
}

}  // namespace weft::bench

// Measures real time, because other threads than the one that started the benchmark do the work.
#define WEFT_FIBER_BENCHMARK(function) \
  BENCHMARK(function)->ArgName("workers")->Arg(1)->Arg(2)->UseRealTime()->MeasureProcessCPUTime()

// Measures how long it takes until a woken fiber runs.
#include <weft/go.hpp>
#include <weft/semaphore.hpp>

#include "bench/fiber_benchmark.hpp"

namespace weft::bench {
namespace {

// Measures two fibers that wake each other alternately.
void fiber_wakes_fiber(benchmark::State& state) {
  in_fiber(state, [&] {
    Semaphore ping(0);
    Semaphore pong(0);
    bool stop = false;
    auto partner = spawn([&] {
      for (;;) {
        ping.acquire();
        if (stop) break;
        pong.release();
      }
    });
    for (auto _ : state) {
      ping.release();
      pong.acquire();
    }
    stop = true;
    ping.release();
    partner.join();
  });
}
WEFT_FIBER_BENCHMARK(fiber_wakes_fiber);

// Measures a plain thread and a fiber of an otherwise idle runtime that wake each other
// alternately.
void thread_wakes_fiber(benchmark::State& state) {
  Runtime runtime({.workers = static_cast<unsigned>(state.range(0))});
  Semaphore ping(0);
  Semaphore pong(0);
  bool stop = false;
  runtime.go([&] {
    for (;;) {
      ping.acquire();
      if (stop) break;
      pong.release();
    }
  });
  for (auto _ : state) {
    ping.release();
    pong.acquire();
  }
  stop = true;
  ping.release();
}
WEFT_FIBER_BENCHMARK(thread_wakes_fiber);

}  // namespace
}  // namespace weft::bench

// Measures the cost of a deadline, with few and with many pending timers.
#include <weft/go.hpp>
#include <weft/semaphore.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "bench/fiber_benchmark.hpp"

namespace weft::bench {
namespace {

// Measures a wait whose deadline never expires, while range(1) other timers are pending.
void timed_wait_that_is_met(benchmark::State& state) {
  in_fiber(state, [&] {
    const std::int64_t pending = state.range(1);
    Semaphore gate(0);
    WaitGroup group;
    group.add(static_cast<std::uint64_t>(pending));
    for (std::int64_t i = 0; i < pending; ++i) {
      go([&gate, &group, i] {
        benchmark::DoNotOptimize(gate.try_acquire_for(std::chrono::seconds(1000 + i % 1000)));
        group.done();
      });
    }
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
      benchmark::DoNotOptimize(pong.try_acquire_for(std::chrono::seconds(100)));
    }
    stop = true;
    ping.release();
    partner.join();
    gate.release(static_cast<std::uint32_t>(pending));
    group.wait();
  });
}
BENCHMARK(timed_wait_that_is_met)
    ->ArgNames({"workers", "pending"})
    ->ArgsProduct({{1, 2}, {0, 1000, 100'000}})
    ->UseRealTime();

// Measures range(1) fibers that sleep for a millisecond each.
void sleeps(benchmark::State& state) {
  in_fiber(state, [&] {
    for (auto _ : state) {
      WaitGroup group;
      group.add(static_cast<std::uint64_t>(state.range(1)));
      for (std::int64_t i = 0; i < state.range(1); ++i) {
        go([&group] {
          this_fiber::sleep_for(std::chrono::milliseconds(1));
          group.done();
        });
      }
      group.wait();
    }
  });
  state.SetItemsProcessed(state.iterations() * state.range(1));
}
BENCHMARK(sleeps)
    ->ArgNames({"workers", "fibers"})
    ->ArgsProduct({{1, 2}, {1, 1000, 100'000}})
    ->UseRealTime();

}  // namespace
}  // namespace weft::bench

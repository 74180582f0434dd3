// Measures the cost of passing a value through a channel.
#include <weft/channel.hpp>
#include <weft/go.hpp>

#include "bench/fiber_benchmark.hpp"

namespace weft::bench {
namespace {

void round_trip(benchmark::State& state) {
  in_fiber(state, [&] {
    Channel<int> ping;
    Channel<int> pong;
    auto partner = spawn([&] {
      while (auto value = ping.receive()) (void)pong.send(*value);
    });
    for (auto _ : state) {
      (void)ping.send(1);
      benchmark::DoNotOptimize(pong.receive());
    }
    ping.close();
    partner.join();
  });
}
WEFT_FIBER_BENCHMARK(round_trip);

// One producer sends to one consumer through a channel with range(1) places.
void buffered(benchmark::State& state) {
  in_fiber(state, [&] {
    Channel<std::int64_t> channel(static_cast<std::size_t>(state.range(1)));
    auto consumer = spawn([&channel] {
      std::int64_t sum = 0;
      while (auto value = channel.receive()) sum += *value;
      return sum;
    });
    for (auto _ : state) (void)channel.send(1);
    channel.close();
    benchmark::DoNotOptimize(consumer.join());
  });
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(buffered)
    ->ArgNames({"workers", "places"})
    ->ArgsProduct({{1, 2}, {1, 16, 128, 1024}})
    ->UseRealTime();

void try_forms(benchmark::State& state) {
  in_fiber(state, [&] {
    Channel<int> channel(1);
    std::optional<int> received;
    for (auto _ : state) {
      int value = 1;
      benchmark::DoNotOptimize(channel.try_send(value));
      benchmark::DoNotOptimize(channel.try_receive(received));
    }
  });
}
BENCHMARK(try_forms)->ArgName("workers")->Arg(1)->UseRealTime();

}  // namespace
}  // namespace weft::bench

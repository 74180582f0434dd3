// Measures the cost of waiting for one of several channels.
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/select.hpp>

#include <memory>
#include <stop_token>
#include <vector>

#include "bench/fiber_benchmark.hpp"

namespace weft::bench {
namespace {

using Numbers = Channel<std::int64_t>;
const auto ignore = [](std::optional<std::int64_t> value) { benchmark::DoNotOptimize(value); };
using Receive = detail::ReceiveCase<std::int64_t, decltype(ignore)>;

// Makes `count` channels, and a select over all of them.
struct Sources {
  Sources(std::int64_t count, std::size_t capacity) {
    for (std::int64_t i = 0; i < count; ++i) {
      channels.push_back(std::make_unique<Numbers>(capacity));
      receives.push_back(std::make_unique<Receive>(channels.back().get(), ignore));
      cases.push_back(receives.back().get());
    }
  }
  std::vector<std::unique_ptr<Numbers>> channels;
  std::vector<std::unique_ptr<Receive>> receives;
  std::vector<SelectCase*> cases;
};

// Measures a select in which all of range(1) channels have a value.
void all_are_ready(benchmark::State& state) {
  in_fiber(state, [&] {
    Sources sources(state.range(1), 1);
    for (auto& channel : sources.channels) (void)channel->send(1);
    for (auto _ : state) (void)sources.channels[select_among(sources.cases)]->send(1);
  });
}
BENCHMARK(all_are_ready)->ArgNames({"workers", "cases"})->ArgsProduct({{1}, {1, 2, 4, 16, 64}});

// Measures a select in which none of range(1) channels has a value, and there is a default.
void none_is_ready(benchmark::State& state) {
  in_fiber(state, [&] {
    Sources sources(state.range(1), 1);
    for (auto _ : state) {
      benchmark::DoNotOptimize(select_among(sources.cases, Deadline::past()));
    }
  });
}
BENCHMARK(none_is_ready)->ArgNames({"workers", "cases"})->ArgsProduct({{1}, {1, 2, 4, 16, 64}});

// Measures a select while another fiber sends to range(1) channels in turn.
void one_becomes_ready(benchmark::State& state) {
  in_fiber(state, [&] {
    Sources sources(state.range(1), 0);
    auto sender = spawn([&sources] {
      for (std::size_t i = 0;; ++i) {
        if (!sources.channels[i % sources.channels.size()]->send(1)) break;
      }
    });
    for (auto _ : state) benchmark::DoNotOptimize(select_among(sources.cases));
    for (auto& channel : sources.channels) channel->close();
    sender.join();
  });
}
BENCHMARK(one_becomes_ready)
    ->ArgNames({"workers", "cases"})
    ->ArgsProduct({{1, 2}, {1, 2, 4, 16, 64}})
    ->UseRealTime();

// Measures what a deadline and a stop request each add to a wait for a value.
enum Limit : std::int64_t { kNoLimit, kDeadline, kStop, kBoth };
void limited(benchmark::State& state) {
  in_fiber(state, [&] {
    Numbers numbers;
    std::stop_source source;
    const std::stop_token token = source.get_token();
    auto sender = spawn([&numbers] {
      while (numbers.send(1)) {
      }
    });
    for (auto _ : state) {
      switch (state.range(1)) {
        case kNoLimit:
          select(on_receive(numbers, ignore));
          break;
        case kDeadline:
          select(on_receive(numbers, ignore), on_timeout(std::chrono::seconds(100)));
          break;
        case kStop:
          select(on_receive(numbers, ignore), on_stop(token));
          break;
        default:
          select(on_receive(numbers, ignore), on_stop(token),
                 on_timeout(std::chrono::seconds(100)));
      }
    }
    numbers.close();
    sender.join();
  });
}
BENCHMARK(limited)
    ->ArgNames({"workers", "limit"})
    ->ArgsProduct({{1, 2}, {kNoLimit, kDeadline, kStop, kBoth}})
    ->UseRealTime();

}  // namespace
}  // namespace weft::bench

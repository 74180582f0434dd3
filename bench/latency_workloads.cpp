// W11: measures how long a ready fiber waits until it runs.
#include "bench/latency.hpp"

#include <atomic>
#include <thread>
#include <vector>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "bench/workload.hpp"

namespace weft::bench {

namespace {

Metrics quantiles(std::vector<double> nanoseconds) {
  Metrics metrics;
  add_quantiles(metrics, "", std::move(nanoseconds));
  return metrics;
}

// Runs bursts of short fibers with pauses, until `stopped` is set.
void run_bursts(const std::atomic<bool>& stopped) {
  while (!stopped.load()) {
    WaitGroup burst;
    burst.add(kBurst);
    for (int i = 0; i < kBurst; ++i) {
      go([&burst] {
        compute(kShortWork);
        burst.done();
      });
    }
    burst.wait();
    this_fiber::sleep_for(kBurstPause);
  }
}

}  // namespace

// Lets a plain thread wake the main fiber, which is the only fiber.
Metrics wake_idle(const Request& request) {
  const std::size_t count = request.count(5'000);
  Channel<Clock::time_point> wakes(1);
  std::thread waker([&wakes, count] {
    for (std::size_t i = 0; i < count; ++i) {
      std::this_thread::sleep_for(kWakePause);
      (void)wakes.send(Clock::now());
    }
    wakes.close();
  });
  std::vector<double> latencies;
  latencies.reserve(count);
  while (auto woken = wakes.receive()) latencies.push_back(nanoseconds_since(*woken));
  waker.join();
  expect("the number of wakes", static_cast<std::int64_t>(latencies.size()),
         static_cast<std::int64_t>(count));
  return quantiles(std::move(latencies));
}

// The main fiber wakes another fiber and continues to compute, so only the other worker can run the
// woken fiber.
Metrics wake_busy(const Request& request) {
  if (request.workers != 2) throw Refusal("W11_busy is about one worker and one other.");
  const std::size_t count = request.count(10'000);
  Channel<Clock::time_point> wakes(1);
  Channel<double> latencies(1);
  std::atomic<bool> stopped{false};
  auto bursts = spawn([&stopped] { run_bursts(stopped); });
  auto woken = spawn([&wakes, &latencies] {
    while (auto wake = wakes.receive()) (void)latencies.send(nanoseconds_since(*wake));
  });
  std::vector<double> found;
  found.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto now = Clock::now();
    (void)wakes.send(now);
    compute_until(now + kWakerComputes);
    found.push_back(latencies.receive().value());
  }
  stopped.store(true);
  wakes.close();
  bursts.join();
  woken.join();
  return quantiles(std::move(found));
}

// Spawns fibers at fixed times, whether or not earlier fibers have run. Their latency counts from
// the moment at which they should have arrived: the main fiber, which spawns them, is late when the
// workers are busy, and its delay is a part of the latency.
Metrics mixed_load(const Request& request) {
  const auto interval = mixed_interval(request.workers);
  const std::size_t count = request.count(20'000 * request.workers);
  std::vector<double> since_arrival(count);
  std::vector<double> since_spawn(count);
  WaitGroup group;
  group.add(count);
  const auto start = Clock::now();
  for (std::size_t i = 0; i < count; ++i) {
    const auto arrival = start + static_cast<Clock::rep>(i + 1) * interval;
    this_fiber::sleep_until(arrival);
    go([&, arrival, spawned = Clock::now(), i] {
      const auto now = Clock::now();
      since_arrival[i] = std::chrono::duration<double, std::nano>(now - arrival).count();
      since_spawn[i] = std::chrono::duration<double, std::nano>(now - spawned).count();
      compute(mixed_work(i));
      group.done();
    });
  }
  group.wait();
  Metrics metrics = quantiles(std::move(since_arrival));
  add_quantiles(metrics, "spawned_", std::move(since_spawn));
  return metrics;
}

}  // namespace weft::bench

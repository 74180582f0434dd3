// W11: measures how long a ready fiber waits until it runs.
#pragma once

#include <boost/fiber/all.hpp>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "bench/latency.hpp"
#include "bench/rivals/measure.hpp"
#include "fiber_parts.hpp"

namespace rivals {

// Lets a plain thread wake the only fiber, which is that of the main thread.
inline Metrics wake_idle(const Request& request) {
  const std::int64_t count = request.count(5'000);
  fibers::buffered_channel<Clock::time_point> wakes(2);  // The smallest capacity that Boost allows.
  std::thread waker([&wakes, count] {
    for (std::int64_t i = 0; i < count; ++i) {
      std::this_thread::sleep_for(weft::bench::kWakePause);
      wakes.push(Clock::now());
    }
    wakes.close();
  });
  std::vector<double> latencies;
  for (const Clock::time_point woken : wakes) latencies.push_back(nanoseconds_between(woken));
  waker.join();
  expect("number of wakes", static_cast<std::int64_t>(latencies.size()), count);
  Metrics metrics;
  weft::bench::add_quantiles(metrics, "", std::move(latencies));
  return metrics;
}

// Starts fibers at fixed times; their latency counts from when they should have started.
inline Metrics mixed_load(const Request& request) {
  const auto interval = weft::bench::mixed_interval(static_cast<std::size_t>(request.workers));
  const std::int64_t count = request.count(20'000 * request.workers);
  std::vector<double> since_arrival(static_cast<std::size_t>(count));
  std::vector<double> since_spawn(since_arrival.size());
  WaitGroup group;
  group.add(count);
  const auto start = Clock::now();
  for (std::size_t i = 0; i < since_arrival.size(); ++i) {
    const auto arrival = start + static_cast<Clock::rep>(i + 1) * interval;
    boost::this_fiber::sleep_until(arrival);
    spawn(fibers::launch::post, [&, arrival, spawned = Clock::now(), i] {
      const auto now = Clock::now();
      since_arrival[i] = nanoseconds_between(arrival, now);
      since_spawn[i] = nanoseconds_between(spawned, now);
      weft::bench::compute(weft::bench::mixed_work(i));
      group.done();
    }).detach();
  }
  group.wait();
  Metrics metrics;
  weft::bench::add_quantiles(metrics, "", std::move(since_arrival));
  weft::bench::add_quantiles(metrics, "spawned_", std::move(since_spawn));
  return metrics;
}

}  // namespace rivals

// W1 to W7 and W10: fibers, channels, mutexes, sleeps. (W7b and W12: select_workloads.cpp.)
#include <atomic>
#include <mutex>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/mutex.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "bench/process_memory.hpp"
#include "bench/workload.hpp"

namespace weft::bench {

namespace {

constexpr std::size_t kBatch = 100;

// Spawns `count` fibers that run `body`, and waits for all of them.
template <class Body>
void flood(std::size_t count, Body body) {
  WaitGroup group;
  group.add(count);
  for (std::size_t i = 0; i < count; ++i) {
    go([&group, body] {
      body();
      group.done();
    });
  }
  group.wait();
}

}  // namespace

Metrics spawn_batches(const Request& request) {
  const std::size_t batches = request.count(2'000'000 / kBatch);
  const double per_batch = per_unit(batches, [](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) flood(kBatch, [] {});
  });
  return {{"ns_per_fiber", per_batch / kBatch}};
}

Metrics flood_adds(const Request& request) {
  const std::size_t count = request.count(1'000'000);
  std::atomic<std::int64_t> counter{0};
  const auto start = Clock::now();
  flood(count, [&counter] {
    for (int i = 0; i < kAddsPerTask; ++i) counter.fetch_add(1);
  });
  const double elapsed = milliseconds_since(start);
  expect("counter", counter, static_cast<std::int64_t>(count) * kAddsPerTask);
  return {{"ms", elapsed}};
}

Metrics flood_empty(const Request& request) {
  const auto start = Clock::now();
  flood(request.count(1'000'000), [] {});
  return {{"ms", milliseconds_since(start)}};
}

// A lower bound for the times of W1b and W8b on one worker.
Metrics adds_alone(const Request& request) {
  const std::size_t count = request.count(1'000'000) * kAddsPerTask;
  std::atomic<std::int64_t> counter{0};
  const auto start = Clock::now();
  for (std::size_t i = 0; i < count; ++i) counter.fetch_add(1);
  return {{"ms", milliseconds_since(start)}};
}

Metrics yield_pair(const Request& request) {
  if (request.workers != 1) throw Refusal("W2 measures a switch, which takes place on one worker.");
  const double per_yield = per_unit(request.count(5'000'000), [](std::size_t count) {
    WaitGroup group;
    group.add(2);
    for (int i = 0; i < 2; ++i) {
      go([&group, count] {
        for (std::size_t k = 0; k < count; ++k) this_fiber::yield();
        group.done();
      });
    }
    group.wait();
  });
  return {{"ns_per_switch", per_yield / 2}};
}

Metrics ping_pong(const Request& request) {
  const double per_trip = per_unit(request.count(1'000'000), [](std::size_t count) {
    Channel<int> ping;
    Channel<int> pong;
    auto partner = spawn([&] {
      while (auto value = ping.receive()) (void)pong.send(*value);
    });
    for (std::size_t i = 0; i < count; ++i) {
      (void)ping.send(static_cast<int>(i));
      expect("the reply", pong.receive().value(), static_cast<int>(i));
    }
    ping.close();
    partner.join();
  });
  return {{"ns_per_round_trip", per_trip}};
}

Metrics buffered_items(const Request& request) {
  const double per_item = per_unit(request.count(5'000'000), [](std::size_t count) {
    Channel<std::size_t> channel(128);
    auto consumer = spawn([&channel] {
      std::size_t sum = 0;
      while (auto value = channel.receive()) sum += *value;
      return sum;
    });
    for (std::size_t i = 0; i < count; ++i) (void)channel.send(i);
    channel.close();
    expect("the sum", static_cast<std::int64_t>(consumer.join()),
           static_cast<std::int64_t>(count * (count - 1) / 2));
  });
  return {{"ns_per_item", per_item}};
}

Metrics contended_mutex(const Request& request) {
  constexpr std::size_t kFibers = 8;
  const double per_lock = per_unit(request.count(500'000), [](std::size_t count) {
    Mutex mutex;
    std::int64_t counter = 0;
    flood(kFibers, [&mutex, &counter, count] {
      for (std::size_t i = 0; i < count; ++i) {
        const std::lock_guard guard(mutex);
        ++counter;
      }
    });
    expect("counter", counter, static_cast<std::int64_t>(count * kFibers));
  });
  return {{"ns_per_op", per_lock / kFibers}};
}

namespace {

void sky(Channel<std::int64_t>& parent, std::int64_t number, std::int64_t size) {
  constexpr std::int64_t kChildren = 10;
  if (size == 1) {
    (void)parent.send(number);
    return;
  }
  Channel<std::int64_t> results;
  const std::int64_t part = size / kChildren;
  for (std::int64_t i = 0; i < kChildren; ++i) {
    go([&results, child = number + i * part, part] { sky(results, child, part); });
  }
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < kChildren; ++i) sum += results.receive().value();
  (void)parent.send(sum);
}

std::int64_t fib(int n) {
  if (n < 2) return n;
  auto other = spawn([n] { return fib(n - 1); });
  const std::int64_t mine = fib(n - 2);
  return other.join() + mine;
}

}  // namespace

Metrics skynet(const Request& request) {
  // The number of leaves must be a power of ten, so the scaled number is rounded down to one.
  std::int64_t leaves = 1;
  while (leaves * 10 <= static_cast<std::int64_t>(request.count(1'000'000))) leaves *= 10;
  Channel<std::int64_t> result;
  const auto start = Clock::now();
  go([&] { sky(result, 0, leaves); });
  const std::int64_t sum = result.receive().value();
  const double elapsed = milliseconds_since(start);
  expect("the sum", sum, leaves * (leaves - 1) / 2);
  return {{"ms", elapsed}};
}

Metrics park_and_wake(const Request& request, std::size_t fibers) {
  const std::size_t count = request.count(fibers);
  const double before = process_memory("VmRSS");
  Channel<int> gate;
  WaitGroup group;
  group.add(count);
  std::atomic<std::size_t> entered{0};
  auto start = Clock::now();
  for (std::size_t i = 0; i < count; ++i) {
    go([&] {
      entered.fetch_add(1, std::memory_order_relaxed);
      (void)gate.receive();
      group.done();
    });
  }
  while (entered.load() < count) this_fiber::yield();
  const double create = milliseconds_since(start);
  // The last fibers have counted themselves, but still have to park.
  this_fiber::sleep_for(std::chrono::milliseconds(200));
  const double held = process_memory("VmRSS") - before;
  start = Clock::now();
  gate.close();
  group.wait();
  return {{"bytes_per_fiber", held / static_cast<double>(count)},
          {"create_ms", create},
          {"wake_ms", milliseconds_since(start)}};
}

Metrics sleepers(const Request& request, std::size_t fibers, int sleeps) {
  const auto start = Clock::now();
  flood(request.count(fibers), [sleeps] {
    for (int i = 0; i < sleeps; ++i) this_fiber::sleep_for(std::chrono::milliseconds(10));
  });
  return {{"ms", milliseconds_since(start)}};
}

Metrics fork_join_fib(const Request& request) {
  // fib(27) makes 832 040 calls; each lower number makes 0.618 times as many.
  int n = 27;
  for (double scale = request.scale; scale < 0.7 && n > 2; scale /= 0.618) --n;
  const auto start = Clock::now();
  const std::int64_t value = fib(n);
  const double elapsed = milliseconds_since(start);
  std::int64_t expected = 0;
  for (std::int64_t i = 0, next = 1; i < n; ++i) {
    expected = std::exchange(next, next + expected);
  }
  expect("fib", value, expected);
  return {{"ms", elapsed}};
}

}  // namespace weft::bench

// Measures how much memory fibers hold, how soon it is released, and what a shortage causes.
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/metrics.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "bench/process_memory.hpp"
#include "bench/workload.hpp"

namespace weft::bench {

namespace {

[[nodiscard]] double resident_megabytes() { return process_memory("VmRSS") / 1e6; }

}  // namespace

// The only worker starts no other fiber before this fiber waits, so all other fibers are mere
// records.
Metrics unstarted(const Request& request) {
  if (request.workers != 1) throw Refusal("a second worker would start the fibers meanwhile");
  const std::size_t count = request.count(10'000'000);
  const double before = process_memory("VmRSS");
  std::int64_t ran = 0;
  WaitGroup group;
  group.add(count);
  auto start = Clock::now();
  for (std::size_t i = 0; i < count; ++i) {
    go([&] {
      ++ran;
      group.done();
    });
  }
  const double create = milliseconds_since(start);
  expect("the number of fibers that have run", ran, 0);
  const double held = process_memory("VmRSS") - before;
  start = Clock::now();
  group.wait();
  expect("the number of fibers that have run", ran, static_cast<std::int64_t>(count));
  return {{"bytes_per_fiber", held / static_cast<double>(count)},
          {"create_ms", create},
          {"run_ms", milliseconds_since(start)}};
}

// Measures resident memory before, during and after a million parked fibers, without a trim call.
Metrics memory_after_burst(const Request& request) {
  const std::size_t count = request.count(1'000'000);
  Metrics metrics{{"rss_mb_before", resident_megabytes()}};
  const double tables = process_memory("VmPTE");
  {
    Channel<int> gate;
    WaitGroup entered;
    WaitGroup group;
    entered.add(count);
    group.add(count);
    for (std::size_t i = 0; i < count; ++i) {
      go([&] {
        entered.done();
        (void)gate.receive();
        group.done();
      });
    }
    entered.wait();
    metrics["rss_mb_parked"] = resident_megabytes();
    metrics["page_table_bytes_per_fiber"] =
        (process_memory("VmPTE") - tables) / static_cast<double>(count);
    gate.close();
    group.wait();
  }
  const auto end = Clock::now();
  metrics["rss_mb_at_once"] = resident_megabytes();
  for (const int moment : {50, 100, 200, 300, 500, 1'000, 2'000, 5'000}) {
    this_fiber::sleep_until(end + std::chrono::milliseconds(moment));
    metrics["rss_mb_after_" + std::to_string(moment) + "_ms"] = resident_megabytes();
  }
  return metrics;
}

namespace {

// Returns the best of several rounds, because other processes disturb some rounds.
double nanoseconds_per_yield(std::size_t count) {
  constexpr std::size_t kRounds = 5;
  double best = std::numeric_limits<double>::max();
  for (std::size_t round = 0; round < kRounds; ++round) {
    const double per_yield = per_unit(std::max<std::size_t>(1, count / kRounds), [](std::size_t n) {
      WaitGroup group;
      for (int i = 0; i < 2; ++i) {
        group.go([n] {
          for (std::size_t k = 0; k < n; ++k) this_fiber::yield();
        });
      }
      group.wait();
    });
    best = std::min(best, per_yield / 2);
  }
  return best;
}

std::size_t fibers_without_stack() {
  return static_cast<std::size_t>(metrics::read().runtimes.front().stats.without_stack);
}

// While it lives, limits the address space to what is in use plus `bytes`.
class AddressLimit {
 public:
  explicit AddressLimit(std::size_t bytes) {
    (void)getrlimit(RLIMIT_AS, &before_);
    rlimit lower = before_;
    lower.rlim_cur = static_cast<rlim_t>(process_memory("VmSize")) + bytes;
    if (setrlimit(RLIMIT_AS, &lower) != 0) throw Refusal("the address space cannot be limited");
  }
  ~AddressLimit() { (void)setrlimit(RLIMIT_AS, &before_); }
  AddressLimit(const AddressLimit&) = delete;
  AddressLimit& operator=(const AddressLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace

// Measures two yielding fibers: first alone, then while many other fibers get no stack.
Metrics yield_beside_stackless(const Request& request) {
  constexpr std::size_t kLarge = std::size_t{1} << 20;  // No other stacks have this size.
  constexpr std::size_t kStacks = 1'000;                // More stacks than the limit allows.
  const std::size_t waiting = request.count(50'000);
  const std::size_t yields = request.count(2'000'000);
  Metrics metrics{{"alone_ns", nanoseconds_per_yield(yields)}};
  std::atomic<std::size_t> ran{0};
  {
    const AddressLimit limit(std::size_t{1} << 30);
    Channel<int> gate;
    WaitGroup group;
    const std::size_t count = waiting + kStacks;
    group.add(count);
    for (std::size_t i = 0; i < count; ++i) {
      go({.stack_size = kLarge}, [&] {
        (void)gate.receive();
        ++ran;
        group.done();
      });
    }
    while (fibers_without_stack() < waiting) this_fiber::sleep_for(std::chrono::milliseconds(1));
    metrics["ns_per_switch"] = nanoseconds_per_yield(yields);
    metrics["waiting"] = static_cast<double>(fibers_without_stack());
    gate.close();
    group.wait();
  }
  expect("the number of fibers that have run", static_cast<std::int64_t>(ran.load()),
         static_cast<std::int64_t>(waiting + kStacks));
  metrics["by_alone"] = metrics["ns_per_switch"] / metrics["alone_ns"];
  return metrics;
}

}  // namespace weft::bench

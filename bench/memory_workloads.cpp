// The memory that fibers hold, and how soon it is given back.
#include <chrono>
#include <cstddef>
#include <string>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "bench/process_memory.hpp"
#include "bench/workload.hpp"

namespace weft::bench {

namespace {

[[nodiscard]] double resident_megabytes() { return process_memory("VmRSS") / 1e6; }

}  // namespace

// One worker, which does not get to the fibers before it waits: all are records and nothing else.
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

// Resident memory before, during and after a million parked fibers. Nothing asks for it back.
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

}  // namespace weft::bench

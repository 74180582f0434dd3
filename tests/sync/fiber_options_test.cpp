// Tests that each call that makes a fiber takes options for the fiber.
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>
#include <weft/event.hpp>
#include <weft/ordered_stream.hpp>
#include <weft/parallel.hpp>
#include <weft/result_group.hpp>
#include <weft/runtime.hpp>
#include <weft/single_flight.hpp>
#include <weft/this_fiber.hpp>
#include <weft/timer.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/fiber_test.hpp"

namespace {

constexpr weft::SpawnOptions kLarge{.stack_size = 256 * 1024, .name = "large"};

// Uses more than the usual stack. Returns whether the calling fiber has the options above.
[[gnu::noinline]] bool is_in_large_fiber() {
  std::array<volatile char, 128 * 1024> bytes;
  for (std::size_t i = 0; i < bytes.size(); i += 1024) bytes[i] = 1;
  return weft::this_fiber::name() == "large";
}

TEST_SUITE_BEGIN("sync/fiber_options");

FIBER_TEST_CASE(
    "parallel loops, streams, SingleFlights, groups and delayed calls use the given fiber "
    "options") {
  std::atomic<int> found{0};
  const auto count = [&found] { found += is_in_large_fiber() ? 1 : 0; };
  weft::for_each(std::vector<int>(2), [&](int) { count(); }, {.max_running = 2, .fibers = kLarge});
  CHECK(found == 2);
  weft::OrderedStream<int> stream(
      1, [&](int) { count(); }, kLarge);
  CHECK(stream.submit([&] {
    count();
    return 0;
  }));
  stream.finish();
  CHECK(found == 4);
  weft::SingleFlight<int, bool> flights(kLarge);
  CHECK(flights.run(1, is_in_large_fiber));
  weft::ResultGroup<bool> group({.fibers = kLarge});
  group.spawn(is_in_large_fiber);
  CHECK(group.join() == std::vector<bool>{true});
  weft::Event called;
  (void)weft::call_after(kLarge, std::chrono::nanoseconds(1), [&] {
    count();
    called.set();
  });
  called.wait();
  CHECK(found == 5);
  weft::WaitGroup all;
  all.go(kLarge, count);
  all.wait();
  CHECK(found == 6);
  weft::Event started;
  runtime.go(kLarge, [&] {
    count();
    started.set();
  });
  started.wait();
  CHECK(found == 7);
}

TEST_SUITE_END();

}  // namespace

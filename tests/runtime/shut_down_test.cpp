// Tests the end of a runtime within a time limit.
#include <chrono>
#include <optional>
#include <thread>
#include <weft/channel.hpp>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/metrics.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"

namespace {

using namespace std::chrono_literals;

TEST_SUITE_BEGIN("runtime/shut_down");

THREAD_TEST_CASE("shut_down() ends the waits of fibers that use the runtime's stop token") {
  weft::Channel<int> channel;
  int ended = 0;
  for (int i = 0; i < 10; ++i) {
    runtime.go([&, token = runtime.stop_token()] {
      std::optional<int> value;
      (void)channel.receive_until(value, token);
      CHECK(!weft::this_fiber::sleep_for(1h, token));
    });
  }
  runtime.go([&, token = runtime.stop_token()] {
    while (weft::this_fiber::sleep_for(1ms, token)) continue;
    ++ended;
  });
  while (weft::metrics::read().runtimes.at(0).parked_count < 11) std::this_thread::yield();
  CHECK(!runtime.stop_token().stop_requested());
  CHECK(runtime.shut_down_for(30s * weft::test::kSlowdown));
  CHECK(runtime.stop_token().stop_requested());
  CHECK(ended == 1);
}

THREAD_TEST_CASE(
    "shut_down_for() lists remaining fibers, and the runtime stays usable until it is destroyed") {
  weft::Event stop;
  runtime.go([&] { stop.wait(); });
  CHECK(!runtime.shut_down_for(10ms));
  CHECK(runtime.run([] { return 1; }) == 1);
  stop.set();
  CHECK(runtime.shut_down_until(weft::Deadline::never()));
}

TEST_SUITE_END();

}  // namespace

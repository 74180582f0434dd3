#include <weft/ordered_stream.hpp>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <vector>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"

TEST_SUITE_BEGIN("sync/ordered_stream");

using namespace std::chrono_literals;
using weft::Context;
using weft::Deadline;
using weft::Event;
using weft::OrderedStream;

FIBER_TEST_CASE("an ordered stream delivers results one by one, in submission order") {
  std::vector<int> delivered;
  std::atomic<int> under_way{0};
  std::atomic<bool> exceeded{false};
  OrderedStream<std::unique_ptr<int>> stream(4, [&](std::unique_ptr<int> value) {
    delivered.push_back(*value);
    --under_way;
  });
  for (int i = 0; i < 200; ++i) {
    CHECK(stream.submit([&, i] {
      if (++under_way > 4 + 1) exceeded = true;
      for (int k = (i * 7) % 5; k > 0; --k) weft::this_fiber::yield();
      return std::make_unique<int>(i);
    }));
  }
  stream.finish();
  CHECK_FALSE(exceeded);
  CHECK(delivered.size() == 200);
  for (int i = 0; i < 200; ++i) CHECK(delivered[static_cast<std::size_t>(i)] == i);
}

FIBER_TEST_CASE(
    "a throwing task stops the other tasks of a stream, and earlier results are delivered") {
  std::vector<int> delivered;
  OrderedStream<int> stream(8, [&](int value) { delivered.push_back(value); });
  for (int i = 0; i < 3; ++i) {
    CHECK(stream.submit([i] {
      for (int k = 0; k < 20; ++k) weft::this_fiber::yield();
      return i;
    }));
  }
  weft::Accepted open = stream.submit([]() -> int { throw std::runtime_error("the fourth"); });
  while (open) {
    open = stream.submit([](Context& context) {
      CHECK_FALSE(weft::this_fiber::sleep_for(1h, context));
      return 9;
    });
  }
  CHECK_THROWS_WITH(stream.finish(), "the fourth");
  CHECK(delivered == std::vector<int>{0, 1, 2});
}

FIBER_TEST_CASE("a sink that throws ends the ordered stream") {
  int calls = 0;
  OrderedStream<int> stream(2, [&](int) {
    ++calls;
    throw std::runtime_error("the sink");
  });
  while (stream.submit([] { return 1; })) weft::this_fiber::yield();
  CHECK_THROWS_WITH(stream.finish(), "the sink");
  CHECK(calls == 1);
}

FIBER_TEST_CASE(
    "a stop request ends a submit() call that waits for room, and a wait for a stream's end") {
  std::atomic<bool> open{false};
  std::vector<int> delivered;
  OrderedStream<int> stream(1, [&](int value) { delivered.push_back(value); });
  CHECK(stream.submit([&] {
    while (!open) weft::this_fiber::yield();
    return 1;
  }));
  Context context;
  context.cancel();
  CHECK_FALSE(stream.submit_until(context, [] { return 2; }));
  CHECK_FALSE(stream.submit_until(Deadline::after(1ms), [] { return 3; }));
  CHECK_FALSE(stream.finish_until(context));
  CHECK_FALSE(stream.finish_until(Deadline::after(1ms)));
  open = true;
  stream.finish();
  CHECK(delivered == std::vector<int>{1});
}

FIBER_TEST_CASE(
    "the destructor of a stream cancels the stream's tasks and waits until they have ended") {
  std::atomic<int> started{0};
  std::atomic<int> ended{0};
  {
    OrderedStream<int> stream(3, [](int) { FAIL_CHECK("abandoned"); });
    for (int i = 0; i < 3; ++i) {
      CHECK(stream.submit([&](std::stop_token token) {
        ++started;
        CHECK_FALSE(weft::this_fiber::sleep_for(1h, token));
        return ++ended;
      }));
    }
    while (started < 3) weft::this_fiber::yield();
    // By then, the stream most likely waits for the first result, which the sink gets first.
    for (int i = 0; i < 100; ++i) weft::this_fiber::yield();
  }
  CHECK(ended == 3);
  CHECK_THROWS_AS(OrderedStream<int>(0, [](int) {}), std::invalid_argument);
}

FIBER_TEST_CASE("an ordered stream refuses all tasks after finish()") {
  std::vector<int> delivered;
  OrderedStream<int> stream(2, [&](int value) { delivered.push_back(value); });
  CHECK(stream.submit([] { return 1; }));
  CHECK(stream.finish_until(Deadline::never()));
  for (int i = 0; i < 5; ++i) {
    CHECK(stream.submit([] { return 2; }).error == weft::Errc::closed);
  }
  stream.finish();
  stream.finish();  // Waits for no result, because there is none.
  CHECK(stream.finish_until(Deadline::past()));
  CHECK(delivered == std::vector<int>{1});
}

THREAD_TEST_CASE("a plain thread submits tasks to an ordered stream") {
  int sum = 0;
  OrderedStream<int> stream(2, [&](int value) { sum = 2 * sum + value; });
  for (int i = 0; i < 5; ++i) CHECK(stream.submit([i] { return i; }));
  stream.finish();
  CHECK(sum == 26);
}

THREAD_TEST_CASE(
    "a deadline or a stop request ends a plain thread's waits for room and for the end of a "
    "stream") {
  std::vector<int> delivered;
  Event open;
  OrderedStream<int> stream(1, [&](int value) { delivered.push_back(value); });
  CHECK(stream.submit([&] {
    open.wait();
    return 1;
  }));
  std::stop_source source;
  weft::go([source]() mutable { (void)source.request_stop(); });
  CHECK_FALSE(stream.submit_until(Deadline::after(1ms), [] { return 2; }));
  CHECK_FALSE(stream.submit_until(source.get_token(), [] { return 3; }));
  CHECK_FALSE(stream.finish_until(Deadline::after(1ms)));
  CHECK_FALSE(stream.finish_until(source.get_token()));
  open.set();
  stream.finish();
  CHECK(delivered == std::vector<int>{1});
}

TEST_SUITE_END();

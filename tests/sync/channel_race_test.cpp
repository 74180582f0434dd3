// Tests channels under races: no value is lost or duplicated.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <vector>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

namespace {

using namespace std::chrono_literals;
using weft::Channel;
using weft::ChannelStatus;
using weft::test::kSlowdown;

using Value = std::unique_ptr<int>;

// Makes one attempt: in one of all forms if `timed`, otherwise in the form that waits.
ChannelStatus send_somehow(Channel<Value>& channel, Value& value, weft::test::Random& random,
                           bool timed) {
  const std::uint64_t form = timed ? random.below(4) : 0;
  if (form == 0) return channel.send_until(value, weft::Deadline::never());
  if (form > 1) return channel.send_for(value, std::chrono::microseconds(random.below(3)));
  const ChannelStatus status = channel.try_send(value);
  if (status == ChannelStatus::would_wait) weft::this_fiber::yield();
  return status;
}
ChannelStatus receive_somehow(Channel<Value>& channel, std::optional<Value>& value,
                              weft::test::Random& random, bool timed) {
  const std::uint64_t form = timed ? random.below(4) : 0;
  if (form == 0) return channel.receive_until(value, weft::Deadline::never());
  if (form > 1) return channel.receive_for(value, std::chrono::microseconds(random.below(3)));
  const ChannelStatus status = channel.try_receive(value);
  if (status == ChannelStatus::would_wait) weft::this_fiber::yield();
  return status;
}

// Runs many producers and consumers, fibers and threads. Each uses a random mix of all forms of
// sending and receiving with timeouts of 0 to 2 us. Every number must arrive exactly once, and the
// numbers of one producer in order at each consumer.
void check_exchange(std::size_t capacity, bool timed) {
  constexpr int kProducers = 5;
  constexpr int kConsumers = 5;
  const int each = 600 / static_cast<int>(kSlowdown);
  Channel<Value> channel(capacity);
  std::vector<std::atomic<int>> seen(static_cast<std::size_t>(kProducers * each));
  const auto produce = [&](int producer) {
    weft::test::Random random(static_cast<std::uint64_t>(producer));
    for (int i = 0; i < each; ++i) {
      auto value = std::make_unique<int>(producer * each + i);
      ChannelStatus status = ChannelStatus::would_wait;
      while (status != ChannelStatus::ok) {
        if (value == nullptr) FAIL_CHECK("a value is gone that was not sent");
        status = send_somehow(channel, value, random, timed);
        if (status == ChannelStatus::closed) FAIL_CHECK("closed too early");
      }
    }
  };
  const auto consume = [&](int consumer) {
    weft::test::Random random(static_cast<std::uint64_t>(100 + consumer));
    std::vector<int> last(kProducers, -1);
    for (;;) {
      std::optional<Value> value;
      const ChannelStatus status = receive_somehow(channel, value, random, timed);
      if (status == ChannelStatus::closed) return;
      if ((status == ChannelStatus::ok) != value.has_value()) FAIL_CHECK("status against value");
      if (!value) continue;
      if (*value == nullptr) FAIL_CHECK("an empty value has arrived");
      const int number = **value;
      seen[static_cast<std::size_t>(number)].fetch_add(1);
      int& previous = last[static_cast<std::size_t>(number / each)];
      if (previous >= number) FAIL_CHECK(number, " comes after ", previous);
      previous = number;
    }
  };
  std::vector<weft::JoinHandle<void>> producers;
  std::vector<weft::JoinHandle<void>> consumers;
  for (int i = 1; i < kProducers; ++i) producers.push_back(weft::spawn([&, i] { produce(i); }));
  for (int i = 1; i < kConsumers; ++i) consumers.push_back(weft::spawn([&, i] { consume(i); }));
  std::thread producing_thread(produce, 0);
  std::thread consuming_thread(consume, 0);
  producing_thread.join();
  for (auto& producer : producers) producer.join();
  channel.close();
  consuming_thread.join();
  for (auto& consumer : consumers) consumer.join();
  int lost = 0;
  int doubled = 0;
  for (const auto& times : seen) {
    lost += times.load() == 0 ? 1 : 0;
    doubled += times.load() > 1 ? 1 : 0;
  }
  CHECK(lost == 0);
  CHECK(doubled == 0);
}

TEST_SUITE_BEGIN("sync/channel");

THREAD_TEST_CASE(
    "each value arrives exactly once when many producers and consumers share a channel") {
  for (const std::size_t capacity : {0UL, 1UL, 2UL, 64UL}) check_exchange(capacity, false);
}

THREAD_TEST_CASE(
    "a channel loses no value when timeouts of 0 to 2 us race with sends and receives") {
  for (const std::size_t capacity : {0UL, 1UL, 5UL}) check_exchange(capacity, true);
}

// The oracle is a deque. With one fiber, each operation that does not wait has one correct result.
FIBER_TEST_CASE_WITH(
    "a channel returns the same values as a std::deque under random operations without waits",
    {.workers = {1}}) {
  weft::test::Random random(1);
  for (int round = 0; round < 50; ++round) {
    const std::size_t capacity = random.below(7);
    Channel<int> channel(capacity);
    std::deque<int> oracle;
    bool closed = false;
    for (int step = 0; step < 300; ++step) {
      int value = step;
      std::optional<int> received = -1;
      const bool full = oracle.size() == capacity;
      switch (random.below(5)) {
        case 0:
        case 1: {
          const ChannelStatus expected = closed ? ChannelStatus::closed
                                         : full ? ChannelStatus::would_wait
                                                : ChannelStatus::ok;
          REQUIRE(channel.try_send(value) == expected);
          if (expected == ChannelStatus::ok) oracle.push_back(value);
          break;
        }
        case 2:
        case 3: {
          const ChannelStatus expected = !oracle.empty() ? ChannelStatus::ok
                                         : closed        ? ChannelStatus::closed
                                                         : ChannelStatus::would_wait;
          REQUIRE(channel.try_receive(received) == expected);
          REQUIRE(received.has_value() == (expected == ChannelStatus::ok));
          if (!received) break;
          REQUIRE(*received == oracle.front());
          oracle.pop_front();
          break;
        }
        default:
          if (random.one_in(60)) REQUIRE(channel.close() == !std::exchange(closed, true));
      }
      REQUIRE(channel.size_hint() == oracle.size());
      REQUIRE(channel.is_closed_hint() == closed);
    }
  }
}

FIBER_TEST_CASE(
    "when sends race with close(), values of earlier sends arrive and later sends are refused") {
  const int rounds = 60 / static_cast<int>(kSlowdown) + 5;
  for (int round = 0; round < rounds; ++round) {
    weft::test::Random random(static_cast<std::uint64_t>(round));
    Channel<int> channel(random.below(3));
    std::atomic<long> sent{0};
    std::atomic<long> received{0};
    std::vector<weft::JoinHandle<void>> fibers;
    for (int i = 1; i <= 4; ++i) {
      fibers.push_back(weft::spawn([&, i] {
        while (channel.send(i)) sent.fetch_add(i);
      }));
      fibers.push_back(weft::spawn([&] {
        while (const std::optional<int> value = channel.receive()) received.fetch_add(*value);
      }));
    }
    for (std::uint64_t turns = random.below(50); turns > 0; --turns) weft::this_fiber::yield();
    channel.close();
    for (auto& fiber : fibers) fiber.join();
    CHECK(sent.load() == received.load());
  }
}

// The channel is destroyed as soon as its only value has been received.
FIBER_TEST_CASE("the caller that receives the last value may destroy the channel") {
  for (int round = 0; round < 2'000 / static_cast<int>(kSlowdown); ++round) {
    auto channel = std::make_unique<Channel<int>>(static_cast<std::size_t>(round % 2));
    auto sender = weft::spawn([&channel = *channel] { return channel.send(1); });
    CHECK(channel->receive() == 1);
    channel.reset();
    CHECK(sender.join());
  }
}

TEST_SUITE_END();

}  // namespace

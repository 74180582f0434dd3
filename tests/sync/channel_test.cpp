#include <weft/channel.hpp>
#include <weft/channel_closer.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/sync/callers.hpp"

namespace {

using namespace std::chrono_literals;
using weft::Channel;
using weft::ChannelStatus;
using weft::test::await_parked;

// Tests numbers in values of many types: an optional of some types fits into a register, and of
// others does not.
template <class T>
T from(int number) {
  return static_cast<T>(number);
}
struct ThreeBytes {
  unsigned char bytes[3];
};
template <>
ThreeBytes from(int number) {
  const auto byte = static_cast<unsigned char>(number);
  return {{byte, byte, byte}};
}
struct alignas(32) Aligned {
  long number;
};
template <>
Aligned from(int number) {
  return {number};
}
template <>
std::string from(int number) {
  return std::string(static_cast<std::size_t>(number), 'x');
}
template <>
std::unique_ptr<int> from(int number) {
  return std::make_unique<int>(number);
}

template <class T>
int number_of(const T& value) {
  return static_cast<int>(value);
}
int number_of(const ThreeBytes& value) {
  CHECK(value.bytes[0] == value.bytes[2]);
  return value.bytes[1];
}
int number_of(const Aligned& value) {
  CHECK(reinterpret_cast<std::uintptr_t>(&value) % 32 == 0);
  return static_cast<int>(value.number);
}
int number_of(const std::string& value) { return static_cast<int>(value.size()); }
int number_of(const std::unique_ptr<int>& value) { return *value; }

// Buffered values, values of waiting senders, and the end reach receive() in different ways.
template <class T>
void send_and_receive(std::size_t capacity) {
  Channel<T> channel(capacity);
  constexpr int kCount = 100;
  auto sender = weft::spawn([&] {
    for (int i = 0; i < kCount; ++i) CHECK(channel.send(from<T>(i)));
    channel.close();
    CHECK(!channel.send(from<T>(1)));
  });
  for (int i = 0; i < kCount; ++i) {
    std::optional<T> value = channel.receive();
    CHECK(value.has_value());
    if (value) CHECK(number_of(*value) == i);
    if (i % 7 == 0) weft::this_fiber::yield();
  }
  CHECK(!channel.receive().has_value());
  sender.join();
}

TEST_SUITE_BEGIN("sync/channel");

FIBER_TEST_CASE("receive() returns values of every kind unchanged") {
  for (const std::size_t capacity : {0u, 1u, 3u, 128u}) {
    send_and_receive<unsigned char>(capacity);
    send_and_receive<short>(capacity);
    send_and_receive<int>(capacity);
    send_and_receive<double>(capacity);
    send_and_receive<ThreeBytes>(capacity);
    send_and_receive<Aligned>(capacity);
    send_and_receive<std::string>(capacity);
    send_and_receive<std::unique_ptr<int>>(capacity);
  }
}

FIBER_TEST_CASE("a buffered channel is FIFO and refuses sends beyond its capacity") {
  Channel<int> channel(3);
  CHECK(channel.capacity() == 3);
  for (int lap = 0; lap < 4; ++lap) {
    for (int i = 0; i < 3; ++i) {
      CHECK(channel.size_hint() == static_cast<std::size_t>(i));
      CHECK(channel.send(10 * lap + i));
    }
    int extra = 99;
    CHECK(channel.try_send(extra) == ChannelStatus::would_wait);
    CHECK(channel.send_for(extra, 10us) == ChannelStatus::timed_out);
    CHECK(extra == 99);
    for (int i = 0; i < 3; ++i) CHECK(channel.receive() == 10 * lap + i);
    std::optional<int> value = 7;
    CHECK(channel.try_receive(value) == ChannelStatus::would_wait);
    CHECK(!value);
    value = 7;
    CHECK(channel.receive_for(value, 10us) == ChannelStatus::timed_out);
    CHECK(!value);
  }
}

FIBER_TEST_CASE("a send on an unbuffered channel waits for a receive") {
  Channel<int> channel;
  CHECK(channel.capacity() == 0);
  int value = 1;
  std::optional<int> received;
  CHECK(channel.try_send(value) == ChannelStatus::would_wait);
  CHECK(channel.try_receive(received) == ChannelStatus::would_wait);
  std::vector<int> trace;  // The send synchronizes both ways, so no atomics are needed.
  auto receiver = weft::spawn([&] {
    for (int i = 0; i < 100; ++i) {
      CHECK(channel.receive() == i);
      trace.push_back(i);
    }
  });
  for (int i = 0; i < 100; ++i) CHECK(channel.send(i));
  receiver.join();
  CHECK(trace.size() == 100);
  CHECK(channel.size_hint() == 0);
}

FIBER_TEST_CASE(
    "try_receive() takes the value of a waiting sender, and try_send() passes a value to a waiting "
    "receiver") {
  Channel<int> channel;
  auto sender = weft::spawn([&] { CHECK(channel.send(5)); });
  std::optional<int> received;
  while (channel.try_receive(received) == ChannelStatus::would_wait) weft::this_fiber::yield();
  CHECK(received == 5);
  sender.join();
  auto receiver = weft::spawn([&] { CHECK(channel.receive() == 6); });
  int value = 6;
  while (channel.try_send(value) == ChannelStatus::would_wait) weft::this_fiber::yield();
  receiver.join();
}

FIBER_TEST_CASE(
    "on an unbuffered channel, writes before a receive are visible after the send has returned") {
  Channel<int> channel;
  for (int round = 0; round < 100; ++round) {
    int plain = 0;  // A data race unless the receive synchronizes with the send's return.
    auto receiver = weft::spawn([&] {
      plain = 1;
      (void)channel.receive();
    });
    CHECK(channel.send(1));
    CHECK(plain == 1);
    receiver.join();
  }
}

FIBER_TEST_CASE("a closed channel refuses every form of send and leaves the value unchanged") {
  Channel<std::unique_ptr<int>> channel(2);
  CHECK(!channel.is_closed_hint());
  CHECK(channel.close());
  CHECK(!channel.close());
  CHECK(channel.is_closed_hint());
  CHECK(!channel.send(std::make_unique<int>(1)));
  auto value = std::make_unique<int>(2);
  CHECK(channel.try_send(value) == ChannelStatus::closed);
  CHECK(channel.send_for(value, 1h) == ChannelStatus::closed);
  CHECK(channel.send_until(value, weft::Deadline::never()) == ChannelStatus::closed);
  REQUIRE(value != nullptr);
  CHECK(*value == 2);
}

FIBER_TEST_CASE("a closed channel returns the queued values and then reports the end") {
  Channel<int> channel(4);
  for (int i = 0; i < 4; ++i) CHECK(channel.send(i));
  channel.close();
  CHECK(channel.receive() == 0);
  std::optional<int> value;
  CHECK(channel.try_receive(value) == ChannelStatus::ok);
  CHECK(value == 1);
  CHECK(channel.receive_for(value, 0ns) == ChannelStatus::ok);
  CHECK(value == 2);
  CHECK(channel.receive_until(value, weft::Deadline::never()) == ChannelStatus::ok);
  CHECK(value == 3);
  CHECK(!channel.receive());
  CHECK(channel.try_receive(value) == ChannelStatus::closed);
  CHECK(!value);
  CHECK(channel.receive_for(value, 1h) == ChannelStatus::closed);
}

THREAD_TEST_CASE("close() wakes all waiting receivers and senders, both fibers and plain threads") {
  Channel<int> empty;
  Channel<std::unique_ptr<int>> full(1);
  CHECK(full.send(std::make_unique<int>(0)));
  std::vector<weft::JoinHandle<void>> fibers;
  const auto receive = [&] { CHECK(!empty.receive()); };
  const auto receive_timed = [&] {
    std::optional<int> value;
    CHECK(empty.receive_for(value, 1h) == ChannelStatus::closed);
  };
  const auto send = [&] {
    auto value = std::make_unique<int>(1);
    CHECK(full.send_for(value, 1h) == ChannelStatus::closed);
    CHECK(value != nullptr);
  };
  for (int i = 0; i < 5; ++i) {
    fibers.push_back(weft::spawn(receive));
    fibers.push_back(weft::spawn(receive_timed));
    fibers.push_back(weft::spawn(send));
    fibers.push_back(weft::spawn([&] { CHECK(!full.send(std::make_unique<int>(2))); }));
  }
  std::thread receiver(receive_timed);
  std::thread sender(send);
  await_parked(runtime, "channel receive", 10);
  await_parked(runtime, "channel send", 10);
  empty.close();
  full.close();
  receiver.join();
  sender.join();
  for (auto& fiber : fibers) fiber.join();
  const auto last = full.receive();
  REQUIRE(last.has_value());
  CHECK(**last == 0);
  CHECK(!full.receive());
}

FIBER_TEST_CASE_WITH("waiting receivers of a channel are served in FIFO order", {.workers = {1}}) {
  Channel<int> channel;
  std::vector<int> got(5, -1);
  std::vector<weft::JoinHandle<void>> fibers;
  for (std::size_t i = 0; i < got.size(); ++i) {
    fibers.push_back(weft::spawn([&, i] { got[i] = channel.receive().value_or(-2); }));
    weft::this_fiber::yield();
  }
  for (int i = 0; i < 5; ++i) CHECK(channel.send(i));
  for (auto& fiber : fibers) fiber.join();
  CHECK(got == std::vector<int>{0, 1, 2, 3, 4});
}

FIBER_TEST_CASE_WITH(
    "values of senders that wait for room in a channel arrive in the order of the sends",
    {.workers = {1}}) {
  Channel<int> channel(2);
  std::vector<weft::JoinHandle<void>> fibers;
  for (int i = 0; i < 6; ++i) {
    fibers.push_back(weft::spawn([&, i] { CHECK(channel.send(i)); }));
    weft::this_fiber::yield();
  }
  for (int i = 0; i < 6; ++i) CHECK(channel.receive() == i);
}

FIBER_TEST_CASE("a channel destroys each queued value exactly once") {
  const auto counted = std::make_shared<int>(0);
  {
    Channel<std::shared_ptr<int>> channel(8);
    for (int i = 0; i < 12; ++i) {
      CHECK(channel.send(counted));
      if (i % 2 == 0) CHECK(channel.receive() == counted);
    }
    CHECK(counted.use_count() == 7);
    channel.close();
  }
  CHECK(counted.use_count() == 1);
}

FIBER_TEST_CASE("a value that a channel has not accepted stays with the sender") {
  Channel<std::unique_ptr<std::string>> channel;
  auto text = std::make_unique<std::string>("mine");
  CHECK(channel.try_send(text) == ChannelStatus::would_wait);
  CHECK(channel.send_for(text, 1us) == ChannelStatus::timed_out);
  REQUIRE(text != nullptr);
  CHECK(*text == "mine");
}

FIBER_TEST_CASE("a send ends a timed receive, and a receive ends a timed send") {
  Channel<int> channel;
  auto receiver = weft::spawn([&] {
    std::optional<int> value;
    CHECK(channel.receive_for(value, 1h) == ChannelStatus::ok);
    CHECK(value == 1);
  });
  CHECK(channel.send(1));
  receiver.join();
  auto sender = weft::spawn([&] {
    int value = 2;
    CHECK(channel.send_for(value, 1h) == ChannelStatus::ok);
  });
  CHECK(channel.receive() == 2);
  sender.join();
}

THREAD_TEST_CASE("a timed send or receive ends at its deadline, not before") {
  Channel<int> channel;
  const auto attempt = [&] {
    const auto deadline = weft::Deadline::after(300us);
    std::optional<int> value;
    CHECK(channel.receive_until(value, deadline) == ChannelStatus::timed_out);
    CHECK(deadline.passed());
    int sent = 1;
    const auto later = weft::Deadline::after(300us);
    CHECK(channel.send_until(sent, later) == ChannelStatus::timed_out);
    CHECK(later.passed());
  };
  attempt();
  weft::spawn(attempt).join();
}

TEST_CASE("a channel whose capacity exceeds the address space is refused") {
  CHECK_THROWS_AS(Channel<std::string>(SIZE_MAX / 2), std::invalid_argument);
}

TEST_CASE("two plain threads exchange values through a channel without a runtime") {
  Channel<int> channel;
  std::thread sender([&] {
    for (int i = 0; i < 1000; ++i) CHECK(channel.send(i));
    channel.close();
  });
  int expected = 0;
  while (const std::optional<int> value = channel.receive()) CHECK(*value == expected++);
  sender.join();
  CHECK(expected == 1000);
}

FIBER_TEST_CASE("a channel is closed when the last copy of its ChannelCloser is destroyed") {
  Channel<int> channel;
  {
    weft::ChannelCloser closer(channel);
    for (int i = 1; i <= 3; ++i) {
      weft::go([&channel, i, own = closer] { (void)channel.send(i); });
    }
    closer.release();
    CHECK_FALSE(channel.is_closed_hint());
  }
  int sum = 0;
  for (const int value : channel) sum += value;
  CHECK(sum == 6);
}

TEST_SUITE_END();

}  // namespace

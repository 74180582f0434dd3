// Tests batches, loops and stop requests of channels.
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>
#include <weft/until.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/sync/callers.hpp"

namespace {

using namespace std::chrono_literals;
using weft::Channel;
using weft::ChannelStatus;
using weft::Deadline;
using weft::Until;
using weft::test::await_parked;

TEST_SUITE_BEGIN("sync/channel_limits");

static_assert(noexcept(std::declval<Channel<int>&>().close()));
static_assert(noexcept(std::declval<Channel<int>&>().size_hint()));
static_assert(std::input_iterator<Channel<std::unique_ptr<int>>::Iterator>);
static_assert(!std::is_copy_constructible_v<Channel<int>> &&
              !std::is_move_constructible_v<Channel<int>>);

FIBER_TEST_CASE(
    "a channel accepts temporary values, and a value moved into a failed send stays with the "
    "sender") {
  Channel<std::unique_ptr<int>> channel(3);
  CHECK(channel.try_send(std::make_unique<int>(1)) == ChannelStatus::ok);
  CHECK(channel.send_for(std::make_unique<int>(2), 1s) == ChannelStatus::ok);
  CHECK(channel.send_until(std::make_unique<int>(3), Until::never()) == ChannelStatus::ok);
  auto four = std::make_unique<int>(4);
  CHECK(channel.try_send(std::move(four)) == ChannelStatus::would_wait);
  CHECK(channel.send_until(std::move(four), Deadline::past()) == ChannelStatus::timed_out);
  CHECK((four != nullptr && *four == 4));
}

// --- Batches -------------------------------------------------------------------------------------

FIBER_TEST_CASE("receive_batch() returns queued values in order, and no more than requested") {
  Channel<int> channel(8);
  for (int i = 0; i < 6; ++i) CHECK(channel.send(i));
  std::vector<int> values{-1};
  CHECK(channel.receive_batch(values, 4) == 4);
  CHECK(values == std::vector<int>{-1, 0, 1, 2, 3});
  CHECK(channel.receive_batch(values, 0) == 0);
  CHECK(channel.receive_batch(values, 100) == 2);
  CHECK(values == std::vector<int>{-1, 0, 1, 2, 3, 4, 5});
  CHECK(channel.size_hint() == 0);
}

FIBER_TEST_CASE("receive_batch() waits only for its first value") {
  Channel<int> channel(8);
  auto receiver = weft::spawn([&] {
    std::vector<int> values;
    CHECK(channel.receive_batch(values, 100) >= 1);
    return values.front();
  });
  await_parked(runtime, "channel receive", 1);
  CHECK(channel.send(7));
  CHECK(receiver.join() == 7);
}

FIBER_TEST_CASE("receive_batch() admits waiting senders in FIFO order") {
  Channel<int> channel(2);
  std::vector<weft::JoinHandle<void>> senders;
  CHECK(channel.send(0));
  CHECK(channel.send(1));
  for (int i = 2; i < 6; ++i) {
    senders.push_back(weft::spawn([&, i] { CHECK(channel.send(i)); }));
    await_parked(runtime, "channel send", i - 1);
  }
  std::vector<int> values;
  CHECK(channel.receive_batch(values, 3) == 3);  // The first value admits a sender, the others
                                                 // admit two.
  CHECK(values == std::vector<int>{0, 1, 2});
  await_parked(runtime, "channel send", 1);
  CHECK(channel.size_hint() == 2);
  while (values.size() < 6) (void)channel.receive_batch(values, 1);
  CHECK(values == std::vector<int>{0, 1, 2, 3, 4, 5});
  for (auto& sender : senders) sender.join();
}

FIBER_TEST_CASE("receive_batch() on an unbuffered channel returns the value of one sender") {
  Channel<int> channel;
  auto sender = weft::spawn([&] {
    for (int i = 0; i < 3; ++i) CHECK(channel.send(i));
    channel.close();
  });
  std::vector<int> values;
  for (int i = 0; i < 3; ++i) CHECK(channel.receive_batch(values, 10) == 1);
  CHECK(channel.receive_batch(values, 10) == 0);
  CHECK(values == std::vector<int>{0, 1, 2});
  sender.join();
}

FIBER_TEST_CASE("a closed channel, a deadline or a stop request ends receive_batch()") {
  Channel<int> channel(4);
  std::vector<int> values;
  const auto deadline = Deadline::after(1ms);
  CHECK(channel.receive_batch(values, 4, deadline) == 0);
  CHECK(deadline.passed());
  std::stop_source source;
  auto stopper = weft::spawn([&] {
    await_parked(runtime, "channel receive", 1);
    source.request_stop();
  });
  CHECK(channel.receive_batch(values, 4, source.get_token()) == 0);
  stopper.join();
  CHECK(channel.send(1));
  CHECK(channel.send(2));
  channel.close();
  CHECK(channel.receive_batch(values, 4, source.get_token()) == 2);
  CHECK(channel.receive_batch(values, 4) == 0);
}

// --- Loops ---------------------------------------------------------------------------------------

FIBER_TEST_CASE("a range-based loop over a channel ends when the channel is closed and drained") {
  Channel<std::unique_ptr<int>> channel(3);
  auto sender = weft::spawn([&] {
    for (int i = 0; i < 20; ++i) CHECK(channel.send(std::make_unique<int>(i)));
    channel.close();
  });
  int expected = 0;
  for (std::unique_ptr<int>& value : channel) {
    const std::unique_ptr<int> mine = std::move(value);
    CHECK(*mine == expected++);
  }
  CHECK(expected == 20);
  for ([[maybe_unused]] const auto& value : channel) FAIL_CHECK("the channel is closed");
  sender.join();
}

// --- Stop requests -------------------------------------------------------------------------------

THREAD_TEST_CASE("a stop request ends waiting receives and sends of fibers and plain threads") {
  Channel<int> empty;
  Channel<int> full(1);
  CHECK(full.send(0));
  std::stop_source source;
  const auto receive = [&] {
    std::optional<int> value = 5;
    CHECK(empty.receive_until(value, source.get_token()) == ChannelStatus::stopped);
    CHECK(!value);
  };
  const auto send = [&] {
    int value = 3;
    CHECK(full.send_until(value, {Deadline::after(1h), source.get_token()}) ==
          ChannelStatus::stopped);
    CHECK(value == 3);
  };
  std::vector<weft::JoinHandle<void>> fibers;
  for (int i = 0; i < 10; ++i) {
    fibers.push_back(weft::spawn(receive));
    fibers.push_back(weft::spawn(send));
  }
  std::thread receiver(receive);
  std::thread sender(send);
  await_parked(runtime, "channel receive", 10);
  await_parked(runtime, "channel send", 10);
  source.request_stop();
  for (auto& fiber : fibers) fiber.join();
  receiver.join();
  sender.join();
  // No waiter remains in a list.
  int value = 1;
  CHECK(empty.try_send(value) == ChannelStatus::would_wait);
  CHECK(full.receive() == 0);
  CHECK(full.size_hint() == 0);
}

FIBER_TEST_CASE("after a stop request, a receive or a send fails only if it would have to wait") {
  Channel<int> channel(1);
  std::stop_source source;
  source.request_stop();
  const std::stop_token token = source.get_token();
  std::optional<int> value;
  for (int i = 0; i < 3; ++i) {
    CHECK(channel.receive_until(value, token) == ChannelStatus::stopped);
    int sent = i;
    CHECK(channel.send_until(sent, token) == ChannelStatus::ok);
    CHECK(channel.send_until(sent, token) == ChannelStatus::stopped);
    CHECK(channel.receive_until(value, token) == ChannelStatus::ok);
    CHECK(value == i);
  }
  channel.close();
  CHECK(channel.receive_until(value, token) == ChannelStatus::closed);
}

FIBER_TEST_CASE("the earlier of a deadline and a stop request ends a receive") {
  Channel<int> channel;
  std::stop_source source;
  const std::stop_token token = source.get_token();
  std::optional<int> value;
  CHECK(channel.receive_until(value, {Deadline::after(100us), token}) == ChannelStatus::timed_out);
  auto stopper = weft::spawn([&] {
    await_parked(runtime, "channel receive", 1);
    source.request_stop();
  });
  CHECK(channel.receive_until(value, {Deadline::after(1h), token}) == ChannelStatus::stopped);
  stopper.join();
}

FIBER_TEST_CASE(
    "a value is either received once or stays with the sender when a stop request races with the "
    "send") {
  const int rounds = static_cast<int>(3000 / weft::test::kSlowdown);
  Channel<int> channel;
  int kept = 0;
  int received = 0;
  for (int round = 0; round < rounds; ++round) {
    std::stop_source source;
    auto sender = weft::spawn([&] {
      int value = 1;
      return channel.send_until(value, source.get_token()) == ChannelStatus::ok ? 0 : 1;
    });
    auto stopper = weft::spawn([&] { source.request_stop(); });
    std::optional<int> value;
    if (channel.receive_until(value, source.get_token()) == ChannelStatus::ok) ++received;
    kept += sender.join();
    stopper.join();
  }
  CHECK(kept + received == rounds);
}

// --- Large values --------------------------------------------------------------------------------

struct Page {
  explicit Page(int number) { bytes.fill(static_cast<unsigned char>(number)); }
  [[nodiscard]] bool is(int number) const {
    for (const unsigned char byte : bytes) {
      if (byte != static_cast<unsigned char>(number)) return false;
    }
    return true;
  }
  std::array<unsigned char, 4096> bytes;
};

FIBER_TEST_CASE("a channel passes values as large as a page unchanged") {
  for (const std::size_t capacity : {0U, 1U, 4U}) {
    Channel<Page> channel(capacity);
    auto sender = weft::spawn([&] {
      for (int i = 0; i < 50; ++i) CHECK(channel.send(Page(i)));
      channel.close();
    });
    int expected = 0;
    for (const Page& page : channel) CHECK(page.is(expected++));
    CHECK(expected == 50);
    sender.join();
  }
}

TEST_SUITE_END();

}  // namespace

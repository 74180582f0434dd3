// Tests that sends and receives that need not wait let other fibers run when the caller's turn is
// over. Each call checks the turn at a different place.
#include <atomic>
#include <optional>
#include <stop_token>
#include <vector>
#include <weft/channel.hpp>
#include <weft/detail/turn.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/fiber_test.hpp"

namespace {

// Ends the turn as the monitor does, which does not run in cases with one worker. It is not
// inlined, because it must find the worker on which the caller runs now.
[[gnu::noinline]] void end_turn() {
  const_cast<weft::detail::Turn*>(weft_current_turn)->over.store(true, std::memory_order_relaxed);
}

// Returns whether `call`, made when the turn is over, yields, which begins a new turn.
template <class Call>
bool gives_way(Call call) {
  end_turn();
  call();
  return !weft::detail::is_turn_over();
}

// Makes a channel with a free place and a value.
struct HalfFull {
  weft::Channel<int> channel{2};
  HalfFull() { (void)channel.send(1); }
};

TEST_SUITE_BEGIN("sync/channel_turn");

FIBER_TEST_CASE_WITH("buffered sends and receives yield when the caller's 1 ms turn is over",
                     {.workers = {1}}) {
  HalfFull half_full;
  auto& channel = half_full.channel;
  CHECK(gives_way([&] { CHECK(channel.send(2)); }));
  CHECK(gives_way([&] { CHECK(channel.receive() == 1); }));
  CHECK(gives_way([&] {
    int value = 3;
    CHECK(channel.send_until(value, {}) == weft::ChannelStatus::ok);
  }));
  CHECK(gives_way([&] {
    std::optional<int> value;
    CHECK(channel.receive_until(value, {}) == weft::ChannelStatus::ok);
    CHECK(value == 2);
  }));
  CHECK(gives_way([&] {
    std::vector<int> values;
    CHECK(channel.receive_batch(values, 5) == 1);
  }));
}

FIBER_TEST_CASE_WITH(
    "a send or receive yields when it finds a waiting fiber and the caller's 1 ms turn is over",
    {.workers = {1}}) {
  weft::Channel<int> channel;
  weft::WaitGroup group;
  group.go([&] { CHECK(channel.receive() == 1); });
  weft::this_fiber::yield();
  CHECK(gives_way([&] { CHECK(channel.send(1)); }));
  group.go([&] { CHECK(channel.send(2)); });
  weft::this_fiber::yield();
  CHECK(gives_way([&] { CHECK(channel.receive() == 2); }));
  group.wait();

  HalfFull half_full;
  auto& buffered = half_full.channel;
  CHECK(buffered.send(2));
  group.go([&] { CHECK(buffered.send(3)); });
  weft::this_fiber::yield();
  CHECK(gives_way([&] { CHECK(buffered.receive() == 1); }));
  group.wait();
}

FIBER_TEST_CASE_WITH(
    "sends and receives on a closed channel yield when the caller's 1 ms turn is over",
    {.workers = {1}}) {
  HalfFull half_full;
  auto& channel = half_full.channel;
  channel.close();
  CHECK(gives_way([&] { CHECK_FALSE(channel.send(2)); }));
  CHECK(gives_way([&] { CHECK(channel.receive() == 1); }));
  CHECK(gives_way([&] { CHECK_FALSE(channel.receive()); }));
}

FIBER_TEST_CASE_WITH(
    "channel calls yield when the caller's 1 ms turn is over, even after a stop request",
    {.workers = {1}}) {
  std::stop_source source;
  source.request_stop();
  weft::Channel<int> channel;
  CHECK(gives_way([&] {
    int value = 1;
    CHECK(channel.send_until(value, source.get_token()) == weft::ChannelStatus::stopped);
  }));
  CHECK(gives_way([&] {
    std::optional<int> value;
    CHECK(channel.receive_until(value, source.get_token()) == weft::ChannelStatus::stopped);
  }));
  CHECK(gives_way([&] {
    std::optional<int> value;
    const weft::Until both(weft::Deadline::past(), source.get_token());
    CHECK(channel.receive_until(value, both) == weft::ChannelStatus::timed_out);
  }));
}

// Tests calls that are permitted while a thread mutex is held, including spawns. If such a caller
// yielded, the next fiber that locks the mutex would block the worker.
FIBER_TEST_CASE_WITH("calls that never park do not yield when the caller's 1 ms turn is over",
                     {.workers = {1}}) {
  weft::WaitGroup group;
  HalfFull half_full;
  auto& channel = half_full.channel;
  CHECK_FALSE(gives_way([&] {
    int value = 2;
    CHECK(channel.try_send(value) == weft::ChannelStatus::ok);
    std::optional<int> received;
    CHECK(channel.try_receive(received) == weft::ChannelStatus::ok);
    CHECK(channel.size_hint() == 1);
    CHECK(channel.close());
    group.go([] {});
  }));
  group.wait();
}

TEST_SUITE_END();

}  // namespace

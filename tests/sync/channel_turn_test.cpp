// Sends and receives that need not wait let others run when the caller's turn is over, each by a
// look of its own, which comes at another place in each.
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

// As the monitor does it, which there is none of: each case has one worker. Not inlined: it is the
// turn of the worker that the caller runs on now.
[[gnu::noinline]] void end_turn() {
  const_cast<weft::detail::Turn*>(weft_current_turn)->over.store(true, std::memory_order_relaxed);
}

// Whether `call`, made when the turn is over, gives way, which begins a new turn.
template <class Call>
bool gives_way(Call call) {
  end_turn();
  call();
  return !weft::detail::is_turn_over();
}

// One with a place and a value in it.
struct HalfFull {
  weft::Channel<int> channel{2};
  HalfFull() { (void)channel.send(1); }
};

TEST_SUITE_BEGIN("sync/channel_turn");

FIBER_TEST_CASE_WITH(
    "sends into and receives from a buffer give way when the caller's turn is over",
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
    "a call that finds a fiber waiting at the other end gives way when the caller's turn is over",
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
    "sends and receives of a closed channel give way when the caller's turn is over",
    {.workers = {1}}) {
  HalfFull half_full;
  auto& channel = half_full.channel;
  channel.close();
  CHECK(gives_way([&] { CHECK_FALSE(channel.send(2)); }));
  CHECK(gives_way([&] { CHECK(channel.receive() == 1); }));
  CHECK(gives_way([&] { CHECK_FALSE(channel.receive()); }));
}

FIBER_TEST_CASE_WITH(
    "calls that an earlier stop request ends give way when the caller's turn is over",
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

// Such as may be made while a thread's mutex is held, spawns among them: who gave way with it would
// stop the worker at the next fiber that wants it.
FIBER_TEST_CASE_WITH("calls that never park do not give way when the caller's turn is over",
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

#include <weft/broadcast.hpp>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>
#include <weft/event.hpp>
#include <weft/select.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"
#include "tests/sync/callers.hpp"

namespace {

using namespace std::chrono_literals;
using weft::Broadcast;
using weft::ChannelStatus;
using weft::Deadline;
using weft::OnLag;
using weft::Subscription;
using weft::test::await_parked;
using weft::test::kSlowdown;
using weft::test::run_mixed;

using Numbers = std::vector<int>;

// Receives all values up to the end of the broadcast.
Numbers rest_of(Subscription<int>& subscription) {
  Numbers values;
  while (const std::optional<int> value = subscription.receive()) values.push_back(*value);
  return values;
}

TEST_SUITE_BEGIN("sync/broadcast");

FIBER_TEST_CASE(
    "each subscription receives every value that is sent after the subscription was made") {
  Broadcast<std::string> broadcast(4);
  CHECK(broadcast.capacity() == 4);
  (void)broadcast.send("unseen");
  Subscription<std::string> early = broadcast.subscribe();
  (void)broadcast.send("one");
  Subscription<std::string> late = broadcast.subscribe();
  CHECK(broadcast.subscriptions_hint() == 2);
  (void)broadcast.send("two");
  Subscription<std::string> moved = std::move(early);
  CHECK(moved.receive() == "one");
  CHECK(moved.receive() == "two");
  CHECK(late.receive() == "two");
  late = std::move(moved);
  CHECK(broadcast.subscriptions_hint() == 1);
  std::optional<std::string> value;
  CHECK(late.try_receive(value) == ChannelStatus::would_wait);
  CHECK(!value);
}

FIBER_TEST_CASE("subscribed fibers and plain threads receive all values in order") {
  const int count = 400 / static_cast<int>(kSlowdown) + 8;
  Broadcast<int> broadcast(4);
  weft::WaitGroup subscribed;
  subscribed.add(8);
  auto sender = weft::spawn([&] {
    subscribed.wait();
    for (int i = 0; i < count; ++i) CHECK(broadcast.send(i));
    CHECK(broadcast.close());
  });
  run_mixed(6, 2, [&](int) {
    Subscription<int> subscription = broadcast.subscribe(OnLag::hold_senders);
    subscribed.done();
    const Numbers values = rest_of(subscription);
    CHECK(values.size() == static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == static_cast<int>(i));
    CHECK(subscription.missed() == 0);
  });
  sender.join();
}

FIBER_TEST_CASE(
    "a subscription that falls too far behind misses the oldest values and counts the missed "
    "values") {
  Broadcast<int> broadcast(3);
  Subscription<int> slow = broadcast.subscribe();
  for (int i = 0; i < 3; ++i) (void)broadcast.send(i);
  CHECK(slow.receive() == 0);
  for (int i = 3; i < 10; ++i) CHECK(broadcast.try_send(i) == ChannelStatus::ok);
  CHECK(slow.missed() == 0);
  CHECK(slow.receive() == 7);
  CHECK(slow.missed() == 6);
  broadcast.close();
  CHECK(rest_of(slow) == Numbers{8, 9});
  CHECK(slow.missed() == 6);
}

FIBER_TEST_CASE("a subscription with OnLag::disconnect ends when it falls too far behind") {
  Broadcast<int> broadcast(2);
  Subscription<int> slow = broadcast.subscribe(OnLag::disconnect);
  (void)broadcast.send(0);
  (void)broadcast.send(1);
  CHECK(slow.receive() == 0);
  (void)broadcast.send(2);
  CHECK(slow.receive() == 1);
  CHECK_FALSE(slow.is_disconnected());
  (void)broadcast.send(3);
  (void)broadcast.send(4);
  CHECK(slow.receive() == std::nullopt);
  CHECK(slow.is_disconnected());
  std::optional<int> value;
  CHECK(slow.try_receive(value) == ChannelStatus::closed);
}

FIBER_TEST_CASE(
    "senders to a broadcast wait in FIFO order for a slow subscription with OnLag::hold_senders") {
  Broadcast<int> broadcast(2);
  Subscription<int> holder = broadcast.subscribe(OnLag::hold_senders);
  Subscription<int> other = broadcast.subscribe();
  (void)broadcast.send(0);
  (void)broadcast.send(1);
  CHECK(broadcast.try_send(2) == ChannelStatus::would_wait);
  CHECK(broadcast.send_until(2, Deadline::past()) == ChannelStatus::timed_out);
  CHECK(broadcast.send_for(2, 100us) == ChannelStatus::timed_out);
  std::stop_source stop;
  auto stopped = weft::spawn([&] { return broadcast.send_until(2, stop.get_token()); });
  await_parked(runtime, "channel send", 1);
  auto first = weft::spawn([&] { return broadcast.send(3); });
  await_parked(runtime, "channel send", 2);
  auto second = weft::spawn([&] { return broadcast.send(4); });
  await_parked(runtime, "channel send", 3);
  stop.request_stop();
  CHECK(stopped.join() == ChannelStatus::stopped);
  CHECK(holder.receive() == 0);
  CHECK(first.join());
  CHECK(other.receive() == 1);
  CHECK(other.missed() == 1);
  CHECK(holder.receive() == 1);
  CHECK(second.join());
  CHECK(holder.receive() == 3);
  CHECK(holder.receive() == 4);
}

FIBER_TEST_CASE("destroying a subscription releases the senders that wait for the subscription") {
  Broadcast<int> broadcast(2);
  std::optional<Subscription<int>> holder = broadcast.subscribe(OnLag::hold_senders);
  Subscription<int> other = broadcast.subscribe(OnLag::hold_senders);
  (void)broadcast.send(0);
  (void)broadcast.send(1);
  CHECK(other.receive() == 0);
  CHECK(broadcast.try_send(2) == ChannelStatus::would_wait);
  auto sender = weft::spawn([&] { return broadcast.send(2); });
  await_parked(runtime, "channel send", 1);
  holder.reset();
  CHECK(sender.join());
  CHECK(broadcast.try_send(3) == ChannelStatus::would_wait);
  CHECK(other.receive() == 1);
  CHECK(broadcast.try_send(3) == ChannelStatus::ok);
}

FIBER_TEST_CASE(
    "a deadline or a stop request ends a subscription's wait, and a later receive returns the next "
    "value") {
  Broadcast<int> broadcast(1);
  Subscription<int> subscription = broadcast.subscribe();
  std::optional<int> value = 7;
  CHECK(subscription.receive_for(value, 100us) == ChannelStatus::timed_out);
  CHECK(!value);
  std::stop_source stop;
  auto waiting = weft::spawn([&] { return subscription.receive_until(value, stop.get_token()); });
  await_parked(runtime, "channel receive", 1);
  stop.request_stop();
  CHECK(waiting.join() == ChannelStatus::stopped);
  (void)broadcast.send(1);
  CHECK(subscription.receive_until(value, stop.get_token()) == ChannelStatus::ok);
  CHECK(value == 1);
}

FIBER_TEST_CASE(
    "closing a broadcast ends the waits of senders and receivers, but queued values can still be "
    "received") {
  Broadcast<int> broadcast(1);
  Subscription<int> holder = broadcast.subscribe(OnLag::hold_senders);
  (void)broadcast.send(1);
  auto sender = weft::spawn([&] { return broadcast.send(2); });
  auto receiver = weft::spawn(
      [subscription = broadcast.subscribe()]() mutable { return subscription.receive(); });
  await_parked(runtime, "channel send", 1);
  await_parked(runtime, "channel receive", 1);
  CHECK(broadcast.close());
  CHECK_FALSE(broadcast.close());
  CHECK(broadcast.is_closed_hint());
  CHECK_FALSE(sender.join());
  CHECK(receiver.join() == std::nullopt);
  CHECK(broadcast.try_send(3) == ChannelStatus::closed);
  CHECK(rest_of(holder) == Numbers{1});
}

FIBER_TEST_CASE("each send wakes a thousand waiting subscriptions, which all receive the value") {
  const int count = 1000 / static_cast<int>(kSlowdown) + 1;
  Broadcast<int> broadcast(2);
  std::vector<weft::JoinHandle<int>> sums;
  for (int i = 0; i < count; ++i) {
    sums.push_back(weft::spawn([subscription = broadcast.subscribe(OnLag::hold_senders)]() mutable {
      int sum = 0;
      while (const std::optional<int> value = subscription.receive()) sum += *value;
      return sum;
    }));
  }
  await_parked(static_cast<std::uint64_t>(count));
  for (const int value : {1, 10, 100, 1000}) (void)broadcast.send(value);
  broadcast.close();
  for (auto& sum : sums) CHECK(sum.join() == 1111);
  CHECK(broadcast.subscriptions_hint() == 0);
}

FIBER_TEST_CASE("a select receives from subscriptions and sends to broadcasts") {
  Broadcast<int> in(1);
  Broadcast<std::string> out(1);
  Subscription<int> numbers = in.subscribe();
  Subscription<std::string> holder = out.subscribe(OnLag::hold_senders);
  (void)out.send("full");
  std::vector<std::string> story;
  std::atomic<int> received{0};
  auto selecting = weft::spawn([&] {
    for (bool open = true; open;) {
      weft::select(weft::on_receive(numbers,
                                    [&](std::optional<int> value) {
                                      open = value.has_value();
                                      story.push_back(open ? std::to_string(*value) : "end");
                                      ++received;
                                    }),
                   weft::on_send(out, "sent", [&] { story.push_back("sent"); }));
    }
  });
  await_parked(runtime, "select", 1);
  (void)in.send(1);
  while (received == 0) weft::this_fiber::yield();
  await_parked(runtime, "select", 1);
  CHECK(holder.receive() == "full");
  CHECK(holder.receive() == "sent");
  in.close();
  selecting.join();
  CHECK(story.front() == "1");
  CHECK(story.back() == "end");
  out.close();
  ChannelStatus status = ChannelStatus::ok;
  weft::select(weft::on_send(out, "late", [&](ChannelStatus is) { status = is; }));
  CHECK(status == ChannelStatus::closed);
  CHECK(weft::select(weft::on_receive(numbers, [](std::optional<int>) {}), weft::otherwise()) == 0);
}

FIBER_TEST_CASE(
    "a permanent subscription receives each value once while other subscriptions come and go") {
  const int count = 300 / static_cast<int>(kSlowdown) + 8;
  Broadcast<int> broadcast(3);
  weft::Event subscribed;
  auto steady = weft::spawn([&] {
    Subscription<int> subscription = broadcast.subscribe(OnLag::hold_senders);
    subscribed.set();
    return rest_of(subscription);
  });
  subscribed.wait();
  auto passing = weft::spawn([&] {
    while (!broadcast.is_closed_hint()) {
      Subscription<int> holder = broadcast.subscribe(OnLag::hold_senders);
      Subscription<int> loser = broadcast.subscribe();
      const std::optional<int> held = holder.receive();
      const std::optional<int> next = holder.receive();
      if (next) CHECK(*next == *held + 1);
      (void)loser.receive();
    }
  });
  run_mixed(2, 1, [&](int number) {
    for (int i = number; number < 1 && i < count; ++i) (void)broadcast.send(i);
  });
  broadcast.close();
  passing.join();
  CHECK(steady.join().size() == static_cast<std::size_t>(count));
}

FIBER_TEST_CASE(
    "a broadcast loses no value when timeouts of 0 to 2 us race with sends and receives") {
  const int count = 2000 / static_cast<int>(kSlowdown);
  Broadcast<int> broadcast(2);
  std::vector<weft::JoinHandle<Numbers>> receivers;
  for (int i = 0; i < 2; ++i) {
    receivers.push_back(
        weft::spawn([subscription = broadcast.subscribe(OnLag::hold_senders)]() mutable {
          weft::test::Random random;
          Numbers values;
          std::optional<int> value;
          for (ChannelStatus status{}; status != ChannelStatus::closed;) {
            status = subscription.receive_for(value, 1ns * random.below(2000));
            if (value) values.push_back(*value);
          }
          return values;
        }));
  }
  weft::test::Random random;
  for (int i = 0; i < count; ++i) {
    while (broadcast.send_for(i, 1ns * random.below(2000)) == ChannelStatus::timed_out) {
    }
  }
  broadcast.close();
  for (auto& receiver : receivers) {
    const Numbers values = receiver.join();
    CHECK(values.size() == static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == static_cast<int>(i));
  }
}

TEST_CASE("a broadcast with a capacity of 0 is refused") {
  CHECK_THROWS_AS(Broadcast<int>(0), std::invalid_argument);
}

TEST_SUITE_END();

}  // namespace

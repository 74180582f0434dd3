// Runs scenarios from Go's test suites for select (runtime/chan_test.go, test/chan) with weft's
// select. The table in tests/README.md maps the cases.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/select.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/sync/callers.hpp"

namespace {

using namespace std::chrono_literals;
using weft::Channel;
using weft::ChannelStatus;
using weft::on_receive;
using weft::on_send;
using weft::on_timeout;
using weft::otherwise;
using weft::select;
using weft::test::await_parked;
using weft::test::kSlowdown;

TEST_SUITE_BEGIN("sync/select_scenarios");

const auto ignore = [](std::optional<int>) {};

FIBER_TEST_CASE(
    "a select never chooses its default while a value moves from one channel to another") {
  const int rounds = static_cast<int>(20'000 / kSlowdown);
  for (int round = 0; round < rounds; ++round) {
    Channel<int> first(1);
    Channel<int> second(1);
    CHECK(first.send(1));
    auto selector = weft::spawn([&] {
      select(on_receive(first, ignore), on_receive(second, ignore),
             otherwise([] { FAIL_CHECK("one of them had a value at each moment"); }));
    });
    CHECK(second.send(1));
    select(on_receive(first, ignore), otherwise());
    selector.join();
  }
}

FIBER_TEST_CASE(
    "a select never chooses its default while one channel has a value or another channel is "
    "closed") {
  const int rounds = static_cast<int>(20'000 / kSlowdown);
  for (int round = 0; round < rounds; ++round) {
    Channel<int> first(1);
    Channel<int> second;
    CHECK(first.send(1));
    auto selector = weft::spawn([&] {
      select(on_receive(first, ignore), on_receive(second, ignore),
             otherwise([] { FAIL_CHECK("a value, or the end, was there at each moment"); }));
    });
    second.close();
    select(on_receive(first, ignore), otherwise());
    selector.join();
  }
}

FIBER_TEST_CASE(
    "a select that sends and receives on one unbuffered channel never receives its own value") {
  for (const std::size_t capacity : {0U, 10U}) {
    constexpr int kCallers = 2;
    const int rounds = static_cast<int>(1000 / kSlowdown);
    Channel<int> channel(capacity);
    weft::WaitGroup group;
    group.add(kCallers);
    for (int caller = 0; caller < kCallers; ++caller) {
      weft::go([&, caller] {
        for (int i = 0; i < rounds; ++i) {
          const auto check = [&](std::optional<int> value) {
            if (capacity == 0) CHECK(value != caller);
          };
          if (caller == 0 || i % 2 == 0) {
            select(on_send(channel, caller), on_receive(channel, check));
          } else {
            select(on_receive(channel, check), on_send(channel, caller));
          }
        }
        group.done();
      });
    }
    group.wait();
  }
}

// Each value goes to one of four channels. Four selects send to all channels, four fibers send to
// one channel each, and the receivers get every value of each sender in its order.
FIBER_TEST_CASE("concurrent plain calls and selects on four channels lose no value") {
  constexpr std::size_t kChannels = 4;
  const int items = static_cast<int>(4000 / kSlowdown);
  std::array<Channel<int>, kChannels> channels{Channel<int>(0), Channel<int>(0), Channel<int>(2),
                                               Channel<int>(3)};
  weft::WaitGroup group;
  group.add(4 * kChannels);
  std::atomic<long> sent{0};
  std::atomic<long> received{0};
  const auto count = [&received](std::optional<int> value) { received += value.value(); };
  for (std::size_t i = 0; i < kChannels; ++i) {
    weft::go([&, i] {
      for (int item = 0; item < items; ++item) {
        CHECK(channels[i].send(item));
        sent += item;
      }
      group.done();
    });
    weft::go([&, i] {
      for (int item = 0; item < items; ++item) count(channels[i].receive());
      group.done();
    });
  }
  for (std::size_t caller = 0; caller < kChannels; ++caller) {
    // Each caller disables a channel with which it has finished.
    const auto with_all = [&](auto&& choose) {
      std::array<int, kChannels> left{};
      left.fill(items / static_cast<int>(kChannels));
      const auto at = [&](std::size_t i) { return left[i] > 0 ? &channels[i] : nullptr; };
      while (std::accumulate(left.begin(), left.end(), 0) > 0) --left[choose(at)];
      group.done();
    };
    weft::go([&, with_all] {
      with_all([&](auto& at) {
        const std::size_t chosen =
            select(on_send(at(0), 1), on_send(at(1), 1), on_send(at(2), 1), on_send(at(3), 1));
        ++sent;
        return chosen;
      });
    });
    weft::go([&, with_all] {
      with_all([&](auto& at) {
        return select(on_receive(at(3), count), on_receive(at(2), count), on_receive(at(1), count),
                      on_receive(at(0), count)) ^
               3;
      });
    });
  }
  group.wait();
  CHECK(sent == received);
}

FIBER_TEST_CASE(
    "a select with two receives from a channel leaves no waiter in that channel when another case "
    "is chosen") {
  Channel<int> twice;
  Channel<int> once;
  auto selector = weft::spawn([&] {
    CHECK(select(on_receive(twice, ignore), on_receive(twice, ignore), on_receive(once, ignore)) ==
          2);
  });
  await_parked(runtime, "select", 1);
  auto receiver = weft::spawn([&] { return twice.receive().value_or(-1); });
  await_parked(runtime, "channel receive", 1);
  CHECK(once.send(1));
  selector.join();
  CHECK(twice.send(7));  // Goes to the receiver, behind two former waiters.
  CHECK(receiver.join() == 7);
}

FIBER_TEST_CASE(
    "when one channel completes a select, the order of another channel's waiters stays unchanged") {
  Channel<int> row;
  Channel<int> elsewhere;
  auto before = weft::spawn([&] { return row.receive().value_or(-1); });
  await_parked(runtime, "channel receive", 1);
  auto selector = weft::spawn([&] {
    CHECK(select(on_receive(row, [](auto) { FAIL_CHECK("that was for the others"); }),
                 on_receive(elsewhere, ignore)) == 1);
  });
  await_parked(runtime, "select", 1);
  auto behind = weft::spawn([&] { return row.receive().value_or(-1); });
  await_parked(runtime, "channel receive", 2);
  CHECK(elsewhere.send(0));
  selector.join();
  CHECK(row.send(1));
  CHECK(row.send(2));
  CHECK(before.join() == 1);
  CHECK(behind.join() == 2);
}

FIBER_TEST_CASE(
    "a select that offers one value to several channels sends the value to only one of them") {
  const int items = static_cast<int>(10'000 / kSlowdown);
  std::array<Channel<int>, 4> channels;
  Channel<int> merged;
  weft::go([&] {
    for (int i = 0; i < items; ++i) {
      select(on_send(channels[0], i), on_send(channels[1], i), on_send(channels[2], i),
             on_send(channels[3], i));
    }
    for (auto& channel : channels) channel.close();
  });
  weft::WaitGroup forwarding;
  forwarding.add(channels.size());
  for (auto& channel : channels) {
    weft::go([&] {
      for (const int value : channel) CHECK(merged.send(value));
      forwarding.done();
    });
  }
  auto closer = weft::spawn([&] {
    forwarding.wait();
    merged.close();
  });
  std::vector<char> seen(static_cast<std::size_t>(items));
  for (const int value : merged) CHECK(seen[static_cast<std::size_t>(value)]++ == 0);
  CHECK(std::accumulate(seen.begin(), seen.end(), 0) == items);
  closer.join();
}

FIBER_TEST_CASE(
    "a select with two ready sends to one channel chooses each send about equally often") {
  for (const std::size_t capacity : {0U, 100U}) {
    constexpr int kBits = 200;
    Channel<int> bits(capacity);
    auto sender = weft::spawn([&] {
      for (int i = 0; i < kBits; ++i) select(on_send(bits, 0), on_send(bits, 1));
      bits.close();
    });
    std::array<int, 2> count{};
    for (const int bit : bits) ++count[static_cast<std::size_t>(bit)];
    CHECK(count[0] + count[1] == kBits);
    // The bound is eight standard deviations of a binomial distribution; chance exceeds it 1 in
    // 10^15 times.
    CHECK(count[0] > kBits / 2 - 57);
    CHECK(count[1] > kBits / 2 - 57);
    sender.join();
  }
}

FIBER_TEST_CASE(
    "a select with two waiting cases on one channel chooses each case about equally often") {
  constexpr int kRounds = 200;
  Channel<int> channel;
  std::array<int, 2> served{};
  for (int i = 0; i < kRounds; ++i) {
    auto selector = weft::spawn(
        [&] { ++served[select(on_receive(channel, ignore), on_receive(channel, ignore))]; });
    await_parked(runtime, "select", 1);
    CHECK(channel.send(1));
    selector.join();
  }
  CHECK(served[0] > kRounds / 2 - 57);  // The bound is the same as above.
  CHECK(served[1] > kRounds / 2 - 57);
}

FIBER_TEST_CASE(
    "a select that receives from two senders that are always ready serves each of them") {
  const int rounds = static_cast<int>(4'000 / kSlowdown);
  Channel<int> first(1);
  Channel<int> second(1);
  std::stop_source source;
  const auto feed = [&](Channel<int>& channel) {
    return weft::spawn([&channel, token = source.get_token()] {
      int value = 1;
      while (channel.send_until(value, token) == ChannelStatus::ok) value = 1;
    });
  };
  auto one = feed(first);
  auto two = feed(second);
  std::array<int, 2> served{};
  for (int i = 0; i < rounds; ++i) {
    // On a busy machine, a sender may be slower than the choice.
    while (first.size_hint() + second.size_hint() < 2) weft::this_fiber::yield();
    ++served[select(on_receive(first, ignore), on_receive(second, ignore))];
  }
  source.request_stop();
  one.join();
  two.join();
  // Eight standard deviations, as above.
  const int slack = static_cast<int>(4 * std::sqrt(rounds));
  CHECK(served[0] > rounds / 2 - slack);
  CHECK(served[1] > rounds / 2 - slack);
}

FIBER_TEST_CASE("a select never chooses a null channel, and chooses a closed channel at once") {
  Channel<int>* none = nullptr;
  Channel<int> closed;
  closed.close();
  Channel<int> empty(1);
  CHECK(select(on_receive(none, ignore), otherwise()) == 1);
  CHECK(select(on_send(none, 1), on_timeout(100us)) == 1);
  CHECK(select(on_receive(closed, ignore), otherwise()) == 0);
  CHECK(select(on_send(closed, 1), otherwise()) == 0);
  CHECK(select(on_receive(empty, ignore), otherwise()) == 1);
  CHECK(select(on_send(empty, 1), otherwise()) == 0);
  CHECK(select(on_send(empty, 1), otherwise()) == 1);
  CHECK(select(on_send(empty, 1), on_receive(none, ignore), on_receive(empty, ignore)) == 2);
}

// The handler of the chosen case is called once; the other cases have no effect.
FIBER_TEST_CASE(
    "a select runs only the chosen case's handler and leaves the values of other cases in place") {
  Channel<std::unique_ptr<int>> first(1);
  Channel<std::string> second(1);
  CHECK(second.send("there"));
  auto value = std::make_unique<int>(5);
  auto to_first = on_send(first, std::move(value));
  std::string got;
  auto from_second =
      on_receive(second, [&](std::optional<std::string> text) { got = text.value(); });
  weft::SelectCase* cases[] = {&to_first, &from_second};
  for (int sent = 0, received = 0; sent + received < 2;) {
    (weft::select_among(cases, weft::Deadline::past()) == 0 ? sent : received) = 1;
  }
  CHECK(got == "there");
  CHECK(**first.receive() == 5);
  CHECK(second.size_hint() == 0);
}

FIBER_TEST_CASE("every form of receive takes values from every form of send") {
  Channel<int> never;
  const std::vector<void (*)(Channel<int>&, Channel<int>&)> receives{
      [](Channel<int>& from, Channel<int>&) { CHECK(from.receive() == 1); },
      [](Channel<int>& from, Channel<int>&) {
        std::optional<int> value;
        while (from.try_receive(value) == ChannelStatus::would_wait) weft::this_fiber::yield();
      },
      [](Channel<int>& from, Channel<int>&) {
        while (select(on_receive(from, ignore), otherwise()) == 1) weft::this_fiber::yield();
      },
      [](Channel<int>& from, Channel<int>& other) {
        select(on_receive(other, ignore), on_receive(from, ignore));
      }};
  const std::vector<void (*)(Channel<int>&, Channel<int>&)> sends{
      [](Channel<int>& to, Channel<int>&) { CHECK(to.send(1)); },
      [](Channel<int>& to, Channel<int>&) {
        int value = 1;
        while (to.try_send(value) == ChannelStatus::would_wait) weft::this_fiber::yield();
      },
      [](Channel<int>& to, Channel<int>&) {
        while (select(on_send(to, 1), otherwise()) == 1) weft::this_fiber::yield();
      },
      [](Channel<int>& to, Channel<int>& other) { select(on_send(other, 2), on_send(to, 1)); }};
  for (std::size_t r = 0; r < receives.size(); ++r) {
    for (std::size_t s = 0; s < sends.size(); ++s) {
      for (const std::size_t capacity : {0U, 1U, 10U}) {
        // Two callers that never wait would never meet in an unbuffered channel.
        const bool both_try = (r == 1 || r == 2) && (s == 1 || s == 2);
        if (both_try && capacity == 0) continue;
        Channel<int> channel(capacity);
        auto sender = weft::spawn([&] { sends[s](channel, never); });
        receives[r](channel, never);
        sender.join();
      }
    }
  }
}

FIBER_TEST_CASE("selects that complete on a busy channel leave no waiter in an idle channel") {
  Channel<int> idle;
  Channel<int> busy;
  const int rounds = static_cast<int>(10'000 / kSlowdown);
  auto sender = weft::spawn([&] {
    for (int i = 0; i < rounds; ++i) CHECK(busy.send(i));
  });
  for (int i = 0; i < rounds; ++i) {
    CHECK(select(on_receive(idle, ignore), on_receive(busy, ignore)) == 1);
  }
  sender.join();
  int value = 1;
  CHECK(idle.try_send(value) == ChannelStatus::would_wait);
  CHECK(idle.close());
}

TEST_SUITE_END();

}  // namespace

#include <array>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/select.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"
#include "tests/sync/callers.hpp"

TEST_SUITE_BEGIN("sync/select");

using namespace std::chrono_literals;
using weft::Channel;
using weft::ChannelStatus;
using weft::Deadline;
using weft::on_done;
using weft::on_receive;
using weft::on_send;
using weft::on_stop;
using weft::on_timeout;
using weft::otherwise;
using weft::select;
using weft::test::await_parked;

FIBER_TEST_CASE("a select chooses the ready case and calls its handler once") {
  Channel<int> empty;
  Channel<int> full(1);
  (void)full.send(7);
  int received = 0;
  const auto chosen =
      select(on_receive(empty, [](auto) { FAIL_CHECK("nobody sent"); }),
             on_receive(full, [&](std::optional<int> value) { received += *value; }));
  CHECK(chosen == 1);
  CHECK(received == 7);
  CHECK(full.size_hint() == 0);
}

FIBER_TEST_CASE("a select chooses its default only when no case is ready") {
  Channel<int> channel(1);
  bool defaulted = false;
  CHECK(select(on_receive(channel, [](auto) { FAIL_CHECK("nobody sent"); }),
               otherwise([&] { defaulted = true; })) == 1);
  CHECK(defaulted);
  CHECK(select(on_send(channel, 1), otherwise([] { FAIL_CHECK("there is a place"); })) == 0);
  CHECK(select(on_send(channel, 2), otherwise()) == 1);
  CHECK(channel.size_hint() == 1);
}

FIBER_TEST_CASE(
    "a waiting select completes when another fiber sends to or receives from one of its channels") {
  Channel<int> first;
  Channel<int> second;
  auto sender = weft::spawn([&] {
    await_parked(runtime, "select", 1);
    (void)second.send(5);
  });
  int received = 0;
  CHECK(select(on_receive(first, [](auto) { FAIL_CHECK("nobody sent"); }),
               on_receive(second,
                          [&](std::optional<int> value) { received = value.value_or(-1); })) == 1);
  CHECK(received == 5);
  sender.join();

  auto receiver = weft::spawn([&] {
    await_parked(runtime, "select", 1);
    return first.receive().value_or(-1);
  });
  ChannelStatus status = ChannelStatus::would_wait;
  CHECK(select(on_receive(second, [](auto) { FAIL_CHECK("nobody sent"); }),
               on_send(first, 9, [&](ChannelStatus result) { status = result; })) == 1);
  CHECK(status == ChannelStatus::ok);
  CHECK(receiver.join() == 9);
}

FIBER_TEST_CASE(
    "in a select, a closed channel is always ready, but a receive gets no value and a send fails") {
  Channel<int> channel;
  auto closer = weft::spawn([&] {
    await_parked(runtime, "select", 1);
    channel.close();
  });
  bool empty = false;
  select(on_receive(channel, [&](std::optional<int> value) { empty = !value.has_value(); }));
  CHECK(empty);
  closer.join();
  ChannelStatus status = ChannelStatus::ok;
  select(on_send(channel, 1, [&](ChannelStatus result) { status = result; }));
  CHECK(status == ChannelStatus::closed);
}

FIBER_TEST_CASE("a select never chooses the case of a null channel") {
  Channel<int>* none = nullptr;
  Channel<int> some(1);
  for (int i = 0; i < 20; ++i) {
    CHECK(select(on_receive(none, [](auto) {}), on_send(none, 1), on_send(some, 2)) == 2);
    CHECK(select(on_receive(none, [](auto) {}), on_receive(some, [](auto) {})) == 1);
  }
  CHECK(select(on_receive(none, [](auto) {}), otherwise()) == 1);
  CHECK(select(on_receive(none, [](auto) {}), on_timeout(1ms)) == 1);
}

FIBER_TEST_CASE("a value that a select did not send stays with the caller") {
  Channel<std::unique_ptr<int>> channel;
  auto value = std::make_unique<int>(3);
  auto send = on_send(channel, std::move(value));
  weft::SelectCase* cases[] = {&send};
  CHECK(weft::select_among(cases, Deadline::past()) == weft::kNoCase);
  auto receiver = weft::spawn([&] { return channel.receive(); });
  CHECK(weft::select_among(cases) == 0);
  CHECK(**receiver.join() == 3);
}

FIBER_TEST_CASE("the earliest timeout ends a select when no other case becomes ready") {
  Channel<int> channel;
  const auto start = Deadline::Clock::now();
  CHECK(select(on_timeout(1h), on_receive(channel, [](auto) {}), on_timeout(2ms)) == 2);
  CHECK(Deadline::Clock::now() - start >= 2ms);
  CHECK(select(on_timeout(5ms)) == 0);
  CHECK(select(on_timeout(Deadline::past()), on_receive(channel, [](auto) {})) == 0);
}

FIBER_TEST_CASE("a stop request before or during a select ends the select") {
  Channel<int> channel;
  std::stop_source source;
  auto stopper = weft::spawn([&] {
    await_parked(runtime, "select", 1);
    source.request_stop();
  });
  int stopped = 0;
  for (int i = 0; i < 3; ++i) {
    CHECK(select(on_receive(channel, [](auto) {}),
                 on_stop(source.get_token(), [&] { ++stopped; })) == 1);
  }
  CHECK(stopped == 3);
  stopper.join();
}

FIBER_TEST_CASE("the end of a fiber ends a select that waits for the fiber") {
  Channel<int> gate;
  auto handle = weft::spawn([&] { return gate.receive().value_or(-1); });
  CHECK(select(on_done(handle), otherwise()) == 1);
  auto opener = weft::spawn([&] {
    await_parked(runtime, "select", 1);
    (void)gate.send(4);
  });
  bool done = false;
  CHECK(select(on_done(handle, [&] { done = true; })) == 0);
  CHECK(done);
  CHECK(handle.done());
  CHECK(handle.join() == 4);
  CHECK(select(on_done(handle), otherwise()) == 1);
}

FIBER_TEST_CASE("a select chooses each ready case about equally often, whichever cases are ready") {
  constexpr std::size_t kChannels = 5;
  constexpr unsigned kRounds = 6000;
  std::array<Channel<int>, kChannels> channels{Channel<int>(1), Channel<int>(1), Channel<int>(1),
                                               Channel<int>(1), Channel<int>(1)};
  // A choice that starts at a random case and continues in order would favour cases after gaps.
  for (const std::vector<std::size_t>& ready :
       std::vector<std::vector<std::size_t>>{{0, 1}, {0, 1, 2, 3, 4}, {1, 4}, {0, 2, 3}}) {
    std::array<unsigned, kChannels> chosen{};
    for (unsigned round = 0; round < kRounds; ++round) {
      for (const std::size_t index : ready) {
        int value = 1;
        (void)channels[index].try_send(value);
      }
      const auto ignore = [](std::optional<int>) {};
      ++chosen[select(on_receive(channels[0], ignore), on_receive(channels[1], ignore),
                      on_receive(channels[2], ignore), on_receive(channels[3], ignore),
                      on_receive(channels[4], ignore))];
    }
    // The bound is seven standard deviations of a binomial distribution; chance exceeds it 1 in
    // 10^11 times.
    const double expected = static_cast<double>(kRounds) / static_cast<double>(ready.size());
    for (const std::size_t index : ready) {
      CHECK(chosen[index] > expected - 7 * 39);
      CHECK(chosen[index] < expected + 7 * 39);
    }
  }
}

FIBER_TEST_CASE("a select that sends and receives on one channel does not pair its own cases") {
  Channel<int> channel;
  const auto both = [&](int own) {
    int got = -1;
    const auto chosen = select(on_receive(channel, [&](std::optional<int> value) { got = *value; }),
                               on_send(channel, own));
    return chosen == 0 ? got : -1;
  };
  CHECK(select(on_receive(channel, [](auto) {}), on_send(channel, 1), on_timeout(1ms)) == 2);
  for (int i = 0; i < 200; ++i) {
    auto other = weft::spawn([&] { return both(10); });
    const int mine = both(20);
    const int others = other.join();
    // One of the two selects has sent, and the other has received.
    CHECK(((mine == 10 && others == -1) || (mine == -1 && others == 20)));
  }
}

FIBER_TEST_CASE("selects that share several channels neither lose nor duplicate a value") {
  constexpr int kCallers = 6;
  const int rounds = static_cast<int>(3000 / weft::test::kSlowdown);
  std::array<Channel<int>, 4> channels{Channel<int>(), Channel<int>(1), Channel<int>(),
                                       Channel<int>(3)};
  weft::WaitGroup group;
  group.add(2 * kCallers);
  std::atomic<long> sent{0};
  std::atomic<long> received{0};
  for (int caller = 0; caller < kCallers; ++caller) {
    weft::go([&, caller] {
      // Each select names the channels in a different order.
      const auto at = [&](int i) -> Channel<int>& {
        return channels[std::size_t(caller + i * (1 + 2 * (caller % 2))) % 4];
      };
      for (int i = 0; i < rounds; ++i) {
        select(on_send(at(0), i), on_send(at(1), i), on_send(at(2), i), on_send(at(3), i));
        sent += i;
      }
      group.done();
    });
    weft::go([&, caller] {
      const auto at = [&](int i) -> Channel<int>& {
        return channels[std::size_t(3 * caller + i) % 4];
      };
      const auto add = [&](std::optional<int> value) { received += value.value(); };
      for (int i = 0; i < rounds; ++i) {
        select(on_receive(at(0), add), on_receive(at(1), add), on_receive(at(2), add),
               on_receive(at(3), add));
      }
      group.done();
    });
  }
  group.wait();
  CHECK(sent == received);
  for (auto& channel : channels) CHECK(channel.size_hint() == 0);
}

FIBER_TEST_CASE(
    "a select receives every value once when deadlines of 0 to 2 us race with senders") {
  const int rounds = static_cast<int>(20000 / weft::test::kSlowdown);
  Channel<int> first;
  Channel<int> second;
  std::atomic<long> sum{0};
  weft::test::Random sender_random(1);
  weft::test::Random receiver_random(2);
  auto sender = weft::spawn([&] {
    long sent = 0;
    for (int i = 0; i < rounds; ++i) {
      const auto wait = std::chrono::nanoseconds(sender_random.below(2000));
      const auto chosen = select(on_send(first, i), on_send(second, i), on_timeout(wait));
      if (chosen < 2) sent += i;
    }
    first.close();
    second.close();
    return sent;
  });
  auto* one = &first;
  auto* two = &second;
  while (one != nullptr || two != nullptr) {
    const auto wait = std::chrono::nanoseconds(receiver_random.below(2000));
    const auto take = [&](Channel<int>*& from) {
      return [&](std::optional<int> value) {
        if (value) {
          sum += *value;
        } else {
          from = nullptr;
        }
      };
    };
    select(on_receive(one, take(one)), on_receive(two, take(two)), on_timeout(wait));
  }
  CHECK(sender.join() == sum);
}

FIBER_TEST_CASE("a select handles more cases than fit on the stack") {
  std::vector<std::unique_ptr<Channel<int>>> channels;
  std::vector<std::unique_ptr<weft::SelectCase>> cases;
  std::vector<weft::SelectCase*> pointers;
  int received = 0;
  for (int i = 0; i < 100; ++i) {
    channels.push_back(std::make_unique<Channel<int>>());
    auto add = [&received](std::optional<int> value) { received += value.value_or(0); };
    using Case = weft::detail::ReceiveCase<int, decltype(add)>;
    cases.push_back(std::make_unique<Case>(channels.back().get(), add));
    pointers.push_back(cases.back().get());
  }
  auto sender = weft::spawn([&] {
    for (int i = 0; i < 100; ++i) (void)channels[static_cast<std::size_t>(i)]->send(i);
  });
  for (int i = 0; i < 100; ++i) CHECK(weft::select_among(pointers) == static_cast<std::size_t>(i));
  CHECK(received == 99 * 100 / 2);
  sender.join();
}

THREAD_TEST_CASE("a plain thread may use select()") {
  Channel<int> numbers;
  Channel<int> others;
  weft::go([&] {
    for (int i = 0; i < 100; ++i) (void)numbers.send(i);
    numbers.close();
  });
  int sum = 0;
  for (bool open = true; open;) {
    select(on_receive(others, [](auto) {}), on_receive(numbers, [&](std::optional<int> value) {
             open = value.has_value();
             sum += value.value_or(0);
           }));
  }
  CHECK(sum == 99 * 50);
}

TEST_SUITE_END();

// Runs scenarios from Go's test suites for channels (runtime/chan_test.go, test/chan) with weft's
// channels. The table in tests/README.md maps the cases.
#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <vector>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/sync/callers.hpp"

namespace {

using weft::Channel;
using weft::ChannelStatus;
using weft::test::await_parked;
using weft::test::kSlowdown;

TEST_SUITE_BEGIN("sync/channel_scenarios");

FIBER_TEST_CASE(
    "a receive waits while the channel is empty, and a send waits while the channel is full") {
  for (std::size_t capacity = 0; capacity < 4; ++capacity) {
    Channel<int> channel(capacity);
    std::atomic<int> returned{0};
    auto receiver = weft::spawn([&] {
      const auto value = channel.receive();
      ++returned;
      return value.value_or(-1);
    });
    await_parked(runtime, "channel receive", 1);
    CHECK(returned == 0);
    CHECK(channel.send(8));
    CHECK(receiver.join() == 8);

    for (std::size_t i = 0; i < capacity; ++i) CHECK(channel.send(static_cast<int>(i)));
    auto sender = weft::spawn([&] {
      CHECK(channel.send(static_cast<int>(capacity)));
      ++returned;
    });
    await_parked(runtime, "channel send", 1);
    CHECK(returned == 1);
    for (std::size_t i = 0; i <= capacity; ++i) CHECK(channel.receive() == static_cast<int>(i));
    sender.join();
  }
}

FIBER_TEST_CASE(
    "each value of a channel reaches exactly one of several receivers, and all their loops end "
    "when the channel is closed") {
  for (const std::size_t capacity : {0U, 1U, 5U, 100U}) {
    constexpr int kReceivers = 10;
    const int values = static_cast<int>(1000 / kSlowdown);
    Channel<int> channel(capacity);
    std::vector<weft::JoinHandle<std::vector<int>>> receivers;
    for (int i = 0; i < kReceivers; ++i) {
      receivers.push_back(weft::spawn([&] {
        std::vector<int> received;
        for (const int value : channel) received.push_back(value);
        return received;
      }));
    }
    for (int i = 0; i < values; ++i) CHECK(channel.send(i));
    channel.close();
    std::vector<int> all;
    for (auto& receiver : receivers) {
      const std::vector<int> some = receiver.join();
      CHECK(std::is_sorted(some.begin(), some.end()));
      all.insert(all.end(), some.begin(), some.end());
    }
    std::sort(all.begin(), all.end());
    REQUIRE(all.size() == static_cast<std::size_t>(values));
    for (int i = 0; i < values; ++i) CHECK(all[static_cast<std::size_t>(i)] == i);
  }
}

FIBER_TEST_CASE("try_receive() on a closing channel returns the last value or reports the end") {
  const int rounds = static_cast<int>(2000 / kSlowdown);
  for (int round = 0; round < rounds; ++round) {
    Channel<int> channel(1);
    CHECK(channel.send(1));
    auto trier = weft::spawn([&] {
      std::optional<int> value;
      CHECK(channel.try_receive(value) != ChannelStatus::would_wait);
    });
    channel.close();
    (void)channel.receive();
    trier.join();
  }
}

FIBER_TEST_CASE(
    "the sum of the numbers stays the same when many fibers pass numbers from one channel to "
    "another") {
  constexpr int kWorkers = 23;
  const int items = static_cast<int>(5000 / kSlowdown);
  const std::vector<int> factors{2, 3, 7, 11, 13, 17, 19, 23, 27, 31};
  Channel<int> questions(kWorkers * 3);
  Channel<int> answers(kWorkers * 3);
  weft::WaitGroup working;
  working.add(kWorkers);
  for (int i = 0; i < kWorkers; ++i) {
    weft::go([&, factor = factors[static_cast<std::size_t>(i) % factors.size()]] {
      for (const int value : questions) {
        if (value % factor == 0) weft::this_fiber::yield();
        CHECK(answers.send(value));
      }
      working.done();
    });
  }
  auto feeder = weft::spawn([&] {
    long expected = 0;
    for (int i = 0; i < items; ++i) {
      expected += i % 100;
      CHECK(questions.send(i % 100));
    }
    questions.close();
    working.wait();
    answers.close();
    return expected;
  });
  long sum = 0;
  for (const int value : answers) sum += value;
  CHECK(sum == feeder.join());
}

FIBER_TEST_CASE(
    "a number that passes through a chain of ten thousand fibers is incremented by each fiber") {
  const int links = static_cast<int>(10'000 / kSlowdown);
  std::vector<std::unique_ptr<Channel<int>>> channels;
  channels.push_back(std::make_unique<Channel<int>>());
  for (int i = 0; i < links; ++i) {
    channels.push_back(std::make_unique<Channel<int>>());
    weft::go([from = channels[channels.size() - 2].get(), to = channels.back().get()] {
      CHECK(to->send(from->receive().value_or(-1) + 1));
    });
  }
  CHECK(channels.front()->send(0));
  CHECK(channels.back()->receive() == links);
  REQUIRE(runtime.stats().spawned >= static_cast<std::uint64_t>(links));
}

FIBER_TEST_CASE("receivers that take turns get the values in the order in which they were sent") {
  constexpr int kFibers = 10;
  Channel<int> values;
  std::vector<std::unique_ptr<Channel<char>>> turns;
  for (int i = 0; i <= kFibers; ++i) turns.push_back(std::make_unique<Channel<char>>(1));
  for (int i = 0; i < kFibers; ++i) {
    weft::go([&, i, turn = turns[static_cast<std::size_t>(i)].get(),
              next = turns[static_cast<std::size_t>(i) + 1].get()] {
      (void)turn->receive();
      CHECK(values.receive() == i);
      CHECK(next->send('x'));
    });
  }
  CHECK(turns.front()->send('x'));
  for (int i = 0; i < kFibers; ++i) CHECK(values.send(i));
  CHECK(turns.back()->receive() == 'x');
}

FIBER_TEST_CASE(
    "try_send() and try_receive() on an unbuffered channel succeed only while the other side is "
    "waiting") {
  struct Pair {
    int first;
    double second;
  };
  Channel<Pair> channel;
  Pair sent{1, 2.5};
  std::optional<Pair> received;
  CHECK(channel.try_receive(received) == ChannelStatus::would_wait);
  CHECK(channel.try_send(sent) == ChannelStatus::would_wait);

  auto receiver = weft::spawn([&] { return channel.receive().value_or(Pair{}); });
  await_parked(runtime, "channel receive", 1);
  CHECK(channel.try_send(sent) == ChannelStatus::ok);
  CHECK(channel.try_send(sent) == ChannelStatus::would_wait);
  CHECK(receiver.join().second == 2.5);

  auto sender = weft::spawn([&] { CHECK(channel.send(Pair{3, 4.5})); });
  await_parked(runtime, "channel send", 1);
  CHECK(channel.try_receive(received) == ChannelStatus::ok);
  CHECK(channel.try_receive(received) == ChannelStatus::would_wait);
  sender.join();
}

// Every number passes through a fiber for each prime found so far, up to the first prime that
// divides it.
FIBER_TEST_CASE(
    "a prime sieve with one fiber for each prime finds the primes and can be shut down") {
  const std::vector<int> primes{2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53};
  auto numbers = std::make_shared<Channel<int>>();
  weft::go([out = numbers] {
    for (int i = 2; out->send(i); ++i) {
    }
  });
  for (const int prime : primes) {
    CHECK(numbers->receive() == prime);
    auto next = std::make_shared<Channel<int>>();
    weft::go([in = numbers, out = next, prime] {
      for (const int number : *in) {
        if (number % prime != 0 && !out->send(number)) break;
      }
      in->close();
    });
    numbers = next;
  }
  numbers->close();
}

struct Empty {};

FIBER_TEST_CASE("a channel of an empty type delivers one value for each send") {
  for (const std::size_t capacity : {0U, 1U, 3U}) {
    Channel<Empty> channel(capacity);
    auto sender = weft::spawn([&] {
      for (int i = 0; i < 10; ++i) CHECK(channel.send({}));
      channel.close();
    });
    int count = 0;
    for ([[maybe_unused]] const Empty& empty : channel) ++count;
    CHECK(count == 10);
    sender.join();
  }
}

FIBER_TEST_CASE("data on the stacks of parked senders and receivers stays intact") {
  // The stacks of fibers never move, so that a value may be a pointer to one.
  Channel<int*> channel;
  auto owner = weft::spawn([&] {
    int mine = 1;
    CHECK(channel.send(&mine));
    CHECK(channel.send(&mine));  // Until its receive, the other fiber may use it.
    return mine;
  });
  int* theirs = channel.receive().value();
  await_parked(runtime, "channel send", 1);
  *theirs += 41;
  CHECK(channel.receive() == theirs);
  CHECK(owner.join() == 42);
}

TEST_SUITE_END();

}  // namespace

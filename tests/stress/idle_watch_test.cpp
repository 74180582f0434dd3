// Tests that an idle worker handles timers, sockets and work from outside while another worker
// computes. The first worker computes until that has happened. So the test does not depend on
// speed, and an event that no worker handles makes it hang until its deadline. The test does not
// detect an event that is merely late, because a worker finds it when it wakes to search for a
// deadlock. There is no monitor, because it would help.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <thread>
#include <weft/channel.hpp>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/net/tcp_stream.hpp>
#include <weft/this_fiber.hpp>
#include <weft/timer.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/random.hpp"
#include "tests/support/ticker.hpp"

namespace {

using namespace std::chrono_literals;
using weft::test::kSlowdown;
using weft::test::Random;
using weft::test::Ticker;

const int kRounds = 50 / static_cast<int>(kSlowdown) + 5;

// Pauses, sometimes long enough that other workers sleep or are about to.
void pause(Random& random) {
  if (random.below(3) == 0)
    weft::this_fiber::sleep_for(std::chrono::microseconds(random.below(3000)));
}

template <class Done>
void compute_until(Done done) {
  while (!done()) weft::detail::pause_cpu();
}

TEST_SUITE_BEGIN("stress/idle_watch");

FIBER_TEST_CASE_WITH("a ticker keeps ticking while another fiber is busy",
                     {.workers = {2, 3, 8}, .options = {.monitor = false}}) {
  Ticker ticker;
  Random random(1);
  for (int round = 0; round < kRounds; ++round) {
    pause(random);
    const std::uint64_t seen = ticker.ticks();
    compute_until([&] { return ticker.ticks() >= seen + 3; });
  }
}

FIBER_TEST_CASE_WITH("a timer fires while the fiber that set the timer is busy",
                     {.workers = {2, 3, 8}, .options = {.monitor = false}}) {
  Random random(2);
  for (int round = 0; round < kRounds; ++round) {
    pause(random);
    std::atomic<bool> called{false};
    auto call =
        weft::call_after(std::chrono::microseconds(random.below(2000)), [&] { called = true; });
    compute_until([&] { return called.load(); });
    (void)call;
  }
}

FIBER_TEST_CASE_WITH("a socket echo returns while another fiber is busy",
                     {.workers = {2, 3, 8}, .options = {.monitor = false}}) {
  Random random(3);
  for (int round = 0; round < kRounds; ++round) {
    // Each round has its own listener, so that the poller repeatedly begins to watch.
    auto listener = weft::net::TcpListener::listen(weft::net::Address::loopback_v4(0));
    REQUIRE(!listener.error);
    pause(random);
    std::atomic<bool> echoed{false};
    weft::WaitGroup group;
    group.go([&] {
      auto accepted = listener.value.accept();
      std::byte byte{};
      (void)accepted.value.read_exactly(std::span(&byte, 1));
      CHECK(!accepted.value.write_all(std::span(&byte, 1)).error);
    });
    group.go([&] {
      auto client = weft::net::TcpStream::connect(listener.value.local_address().value);
      std::byte byte{7};
      CHECK(!client.value.write_all(std::span(&byte, 1)).error);
      (void)client.value.read_exactly(std::span(&byte, 1));
      echoed = true;
    });
    pause(random);
    compute_until([&] { return echoed.load(); });
    group.wait();
  }
}

FIBER_TEST_CASE_WITH("a plain thread can spawn and wake fibers while another fiber is busy",
                     {.workers = {2, 3, 8}, .options = {.monitor = false}}) {
  Random random(4);
  for (int round = 0; round < kRounds; ++round) {
    weft::Event event;
    std::atomic<int> ran{0};
    weft::WaitGroup group;
    group.go([&] {
      event.wait();
      ++ran;
    });
    pause(random);
    std::thread outside([&] {
      event.set();
      runtime.go([&] { ++ran; });
    });
    compute_until([&] { return ran == 2; });
    outside.join();
    group.wait();
  }
}

TEST_SUITE_END();

}  // namespace

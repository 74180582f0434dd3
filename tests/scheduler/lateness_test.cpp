// Tests that no timed wait ends late while a worker is idle. The cases watch a descriptor, so that
// one worker sleeps in the event source and the others elsewhere; fibers are pinned or not; another
// fiber computes.
#include <atomic>
#include <chrono>
#include <optional>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/semaphore.hpp>
#include <weft/this_fiber.hpp>
#include <weft/timer.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/lateness.hpp"

namespace {

using namespace std::chrono_literals;
using weft::test::Lateness;

constexpr auto kWait = 5ms;
constexpr int kRounds = 10;

weft::net::TcpListener listen() {
  return std::move(weft::net::TcpListener::listen(weft::net::Address::loopback_v4(0)).value);
}

// Checks that at least two of kRounds waits end in time. A machine may stop one processor for a
// while, and the thread that records such stops may be on another processor. A timer that no worker
// watches is late nearly every time.
template <class Wait>
[[nodiscard]] bool is_punctual(Lateness& lateness, Wait wait) {
  int late = 0;
  for (int round = 0; round < kRounds; ++round) late += lateness.is_punctual(kWait, wait) ? 0 : 1;
  return late < kRounds - 1;
}

// Makes several waits of each kind.
void wait_often(Lateness& lateness) {
  CHECK(is_punctual(lateness, [] { weft::this_fiber::sleep_for(kWait); }));
  CHECK(is_punctual(lateness, [] {
    weft::Semaphore empty(0);
    (void)empty.try_acquire_until(kWait);
  }));
  CHECK(is_punctual(lateness, [] {
    weft::Channel<int> silent(1);
    std::optional<int> value;
    (void)silent.receive_for(value, kWait);
  }));
  CHECK(is_punctual(lateness, [] {
    weft::Channel<int> timer(1);
    const auto call = weft::call_after(kWait, [&] { (void)timer.send(1); });
    (void)timer.receive();
  }));
}

const weft::test::Setup kManyWorkers{.workers = {1, 2, 3, 5, 16}};

TEST_SUITE_BEGIN("scheduler/lateness");

FIBER_TEST_CASE_WITH("a timed wait ends on time while a worker is asleep in the event source",
                     {kManyWorkers}) {
  Lateness lateness;
  const auto listener = listen();
  wait_often(lateness);
}

FIBER_TEST_CASE_WITH("a timed wait of a pinned fiber ends on time while other workers are asleep",
                     {kManyWorkers}) {
  Lateness lateness;
  const auto listener = listen();
  weft::spawn({.pinned = true}, [&] { wait_often(lateness); }).join();
}

FIBER_TEST_CASE_WITH("a timed wait ends on time while another fiber is computing",
                     {.workers = {2, 3, 5, 16}}) {
  Lateness lateness;
  const auto listener = listen();
  std::atomic<bool> over{false};
  weft::WaitGroup computes;
  computes.go([&] {
    while (!over.load()) weft::detail::pause_cpu();
  });
  wait_often(lateness);
  over.store(true);
  computes.wait();
}

FIBER_TEST_CASE_WITH("a timed accept ends on time when no client connects", {kManyWorkers}) {
  Lateness lateness;
  auto listener = listen();
  CHECK(is_punctual(lateness, [&] { (void)listener.accept(kWait); }));
}

TEST_SUITE_END();

}  // namespace

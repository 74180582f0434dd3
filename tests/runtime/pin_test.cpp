// Tests fibers that stay on their thread for a scope.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>
#include <weft/channel.hpp>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/fiber_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::test::kSlowdown;
using weft::this_fiber::Pin;
using weft::this_fiber::sleep_for;
using weft::this_fiber::yield;

TEST_SUITE_BEGIN("runtime/pin");

[[gnu::noinline]] pid_t this_thread() { return ::gettid(); }

FIBER_TEST_CASE("a fiber stays on its thread while a Pin exists") {
  weft::Channel<int> channel(1);
  std::atomic<int> moved{0};
  const int rounds = 50 / static_cast<int>(kSlowdown);
  weft::WaitGroup group;
  for (int i = 0; i < 32; ++i) {
    group.go([&, i] {
      for (int round = 0; round < rounds; ++round) {
        yield();
        const Pin pin;
        const pid_t home = this_thread();
        const auto look = [&] { moved += this_thread() == home ? 0 : 1; };
        yield();
        look();
        if (i % 2 == 0) {
          (void)channel.send(round);
        } else {
          CHECK(channel.receive().has_value());
        }
        look();
        if (round % 16 == 0) sleep_for(1ms);
        look();
        weft::spawn([] { yield(); }).join();
        look();
      }
    });
  }
  group.wait();
  CHECK(moved == 0);
}

FIBER_TEST_CASE(
    "a fiber stays pinned by an outer Pin or by SpawnOptions::pinned when an inner Pin ends") {
  std::atomic<int> moved{0};
  const auto body = [&] {
    const pid_t home = this_thread();
    for (int i = 0; i < 20; ++i) {
      { const Pin inner; }
      yield();
      sleep_for(10us);
      moved += this_thread() == home ? 0 : 1;
    }
  };
  weft::WaitGroup group;
  for (int i = 0; i < 8; ++i) {
    group.go([&] {
      const Pin outer;
      body();
    });
  }
  weft::spawn({.pinned = true}, body).join();
  group.wait();
  CHECK(moved == 0);
}

FIBER_TEST_CASE("a child that runs in place inside its parent's join() may pin itself") {
  std::atomic<int> moved{0};
  weft::WaitGroup group;
  for (int i = 0; i < 16; ++i) {
    group.go([&] {
      for (int round = 0; round < 20; ++round) {
        weft::spawn([&] {
          const Pin pin;
          const pid_t home = this_thread();
          yield();
          sleep_for(10us);
          moved += this_thread() == home ? 0 : 1;
        }).join();
      }
    });
  }
  group.wait();
  CHECK(moved == 0);
}

// The only worker is stuck, so the monitor starts a spare worker. The spare stays while the pinned
// fiber needs it, although the worker is free again.
FIBER_TEST_CASE_WITH("a fiber that pins itself to a spare worker continues on the spare worker",
                     {.workers = {1}, .monitored = true}) {
  const pid_t first = this_thread();
  std::atomic<bool> is_pinned{false};
  std::atomic<int> moved{0};
  auto pinned = weft::spawn([&] {
    const Pin pin;
    const pid_t home = this_thread();
    CHECK(home != first);
    is_pinned = true;
    for (int i = 0; i < 30; ++i) {
      sleep_for(10ms);
      moved += this_thread() == home ? 0 : 1;
    }
  });
  while (!is_pinned) std::this_thread::sleep_for(1ms);
  pinned.join();
  CHECK(moved == 0);
}

FIBER_TEST_CASE("may_switch() returns false in a NoSwitch scope") {
  CHECK(weft::this_fiber::may_switch());
  {
    const weft::this_fiber::NoSwitch outer;
    { const weft::this_fiber::NoSwitch inner; }
    CHECK(!weft::this_fiber::may_switch());
  }
  CHECK(weft::this_fiber::may_switch());
}

TEST_CASE("a Pin on a plain thread has no effect, and may_switch() returns true") {
  const Pin pin;
  CHECK(weft::this_fiber::may_switch());
}

TEST_SUITE_END();

}  // namespace

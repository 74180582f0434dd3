// Tests fibers that stay on one worker thread.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/mutex.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/fiber_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::test::kSlowdown;
using weft::this_fiber::sleep_for;
using weft::this_fiber::yield;

constexpr weft::SpawnOptions kPinned{.pinned = true};

TEST_SUITE_BEGIN("runtime/pinned");

// Runs fibers that compute and yield until all have finished. Workers can steal these fibers, and
// pinned fibers wait behind them.
class Crowd {
 public:
  explicit Crowd(int count) {
    for (int i = 0; i < count; ++i) {
      group_.go([this] {
        while (!stop_) yield();
      });
    }
  }
  ~Crowd() {
    stop_ = true;
    group_.wait();
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

 private:
  std::atomic<bool> stop_{false};
  weft::WaitGroup group_;
};

FIBER_TEST_CASE("a pinned fiber continues on its thread after every kind of wait") {
  const Crowd crowd(8);
  weft::Channel<int> channel(1);
  weft::Mutex mutex;
  std::atomic<int> moved{0};
  const int rounds = 50 / static_cast<int>(kSlowdown);
  std::vector<weft::JoinHandle<void>> handles;
  for (int i = 0; i < 16; ++i) {
    handles.push_back(weft::spawn(kPinned, [&, i] {
      const pid_t home = ::gettid();
      const auto look = [&] { moved += ::gettid() == home ? 0 : 1; };
      for (int round = 0; round < rounds; ++round) {
        yield();
        look();
        if (i % 2 == 0) {
          (void)channel.send(round);
        } else {
          CHECK(channel.receive().has_value());
        }
        look();
        const std::lock_guard lock(mutex);
        yield();
        look();
      }
      sleep_for(1ms);
      look();
      weft::spawn([] { yield(); }).join();
      look();
      weft::spawn(kPinned, [] { yield(); }).join();
      look();
    }));
  }
  for (auto& handle : handles) handle.join();
  CHECK(moved == 0);
}

// The wakers are plain threads, or fibers of another runtime.
THREAD_TEST_CASE("a plain thread can wake a pinned fiber, even when all workers are asleep") {
  for (int round = 0; round < 10; ++round) {
    weft::Channel<int> there(0);
    weft::Channel<int> back(0);
    std::atomic<int> moved{0};
    auto handle = weft::spawn(kPinned, [&] {
      const pid_t home = ::gettid();
      while (const auto value = there.receive()) {
        moved += ::gettid() == home ? 0 : 1;
        (void)back.send(*value);
        moved += ::gettid() == home ? 0 : 1;
      }
    });
    for (int i = 0; i < 20; ++i) {
      CHECK(there.send(i));
      CHECK(back.receive() == i);
      // Lets workers sleep before some of the wakes.
      if (i % 10 == 0) std::this_thread::sleep_for(2ms);
    }
    there.close();
    handle.join();
    CHECK(moved == 0);
  }
}

THREAD_TEST_CASE("pinned fibers that plain threads spawn are distributed over all workers") {
  const unsigned workers = runtime.workers();
  std::vector<std::atomic<pid_t>> homes(workers);
  weft::WaitGroup group;
  group.add(workers);
  for (unsigned i = 0; i < workers; ++i) {
    weft::go(kPinned, [&, i] {
      homes[i] = ::gettid();
      group.done();
    });
  }
  group.wait();
  for (unsigned i = 0; i < workers; ++i) {
    for (unsigned j = 0; j < i; ++j) CHECK(homes[i] != homes[j]);
  }
}

FIBER_TEST_CASE("a pinned fiber runs alternately with other fibers, even if these yield forever") {
  std::atomic<int> turns{0};
  std::atomic<bool> stop{false};
  weft::WaitGroup others;
  others.go([&] {
    while (!stop) {
      ++turns;
      yield();
    }
  });
  // A fiber that yields all the time does not keep other fibers from running, either.
  others.go([&] {
    auto restless = weft::spawn(kPinned, [&] {
      while (!stop) yield();
    });
    restless.join();
  });
  auto pinned = weft::spawn(kPinned, [&] {
    for (int i = 0; i < 100; ++i) {
      const int seen = turns;
      while (turns == seen) yield();
    }
  });
  pinned.join();
  stop = true;
  others.wait();
}

FIBER_TEST_CASE(
    "a pinned fiber waits while its worker is blocked, and no spare worker runs the pinned fiber") {
  std::atomic<int> moved{0};
  std::vector<weft::JoinHandle<void>> handles;
  for (int i = 0; i < 4; ++i) {
    handles.push_back(weft::spawn(kPinned, [&] {
      const pid_t home = ::gettid();
      for (int round = 0; round < 5; ++round) {
        sleep_for(5ms);
        moved += ::gettid() == home ? 0 : 1;
      }
    }));
  }
  // Blocks the thread in a way that weft does not notice.
  handles.push_back(weft::spawn([] { std::this_thread::sleep_for(60ms); }));
  for (auto& handle : handles) handle.join();
  CHECK(moved == 0);
}

TEST_SUITE_END();

}  // namespace

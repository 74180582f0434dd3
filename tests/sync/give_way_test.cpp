// Regression test: a receiver of a channel that was never empty let no other fiber run, and a 10 ms
// ticker ticked once in 2 s. Now calls to weft that need not wait yield when the fiber's turn is
// over. Each worker gets a hog, a fiber that forever makes one kind of call without a wait. The
// test ends when another fiber has slept several times, for which the hogs must yield. There are no
// spare workers, because they would run that fiber.
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <vector>
#include <weft/channel.hpp>
#include <weft/detail/own_runtime.hpp>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/mutex.hpp>
#include <weft/pool.hpp>
#include <weft/select.hpp>
#include <weft/semaphore.hpp>
#include <weft/shared_mutex.hpp>
#include <weft/this_fiber.hpp>
#include <weft/timer.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/fiber_test.hpp"

namespace {

using namespace std::chrono_literals;

// Starts a hog for each worker, each with its own `make_call()`.
template <class MakeCall>
void check_gives_way(MakeCall make_call) {
  std::atomic<bool> stop{false};
  std::vector<weft::JoinHandle<void>> hogs;
  for (unsigned i = 0; i < weft::detail::concurrency(); ++i) {
    hogs.push_back(weft::spawn([&stop, make_call] {
      auto call = make_call();
      // Relaxed: the hog may see it late.
      while (!stop.load(std::memory_order_relaxed)) call();
    }));
  }
  int ticks = 0;
  for (; ticks < 5; ++ticks) weft::this_fiber::sleep_for(1ms);
  stop.store(true, std::memory_order_relaxed);
  for (auto& hog : hogs) hog.join();
  CHECK(ticks == 5);
}

#define HOG_TEST_CASE(sentence) \
  FIBER_TEST_CASE_WITH(sentence, {.options = {.max_spare_workers = 0}})

TEST_SUITE_BEGIN("sync/give_way");

HOG_TEST_CASE("a fiber lets other fibers run even if its sends and receives return at once") {
  check_gives_way([] {
    return [channel = std::make_unique<weft::Channel<int>>(4)] {
      (void)channel->send(1);
      (void)channel->receive();
    };
  });
}

HOG_TEST_CASE(
    "a fiber lets other fibers run even if it receives from a channel that is never empty") {
  check_gives_way([] {
    auto channel = std::make_unique<weft::Channel<int>>(4);
    for (int i = 0; i < 4; ++i) (void)channel->send(i);
    return [channel = std::move(channel)] {
      // The value returns to the channel without a call to weft that may yield.
      std::optional<int> value = channel->receive();
      (void)channel->try_send(*value);
    };
  });
}

HOG_TEST_CASE("a fiber lets other fibers run even if it repeatedly locks free mutexes") {
  check_gives_way([] {
    return [mutex = std::make_unique<weft::Mutex>()] { const std::lock_guard guard(*mutex); };
  });
  check_gives_way([] {
    return [mutex = std::make_unique<weft::SharedMutex>()] { const std::lock_guard guard(*mutex); };
  });
  check_gives_way([] {
    return
        [mutex = std::make_unique<weft::SharedMutex>()] { const std::shared_lock guard(*mutex); };
  });
}

HOG_TEST_CASE(
    "a fiber lets other fibers run even if its waits for a semaphore or a wait group return at "
    "once") {
  check_gives_way([] {
    return [semaphore = std::make_unique<weft::Semaphore>(1)] {
      semaphore->acquire();
      semaphore->release();
    };
  });
  check_gives_way([] { return [group = std::make_unique<weft::WaitGroup>()] { group->wait(); }; });
}

HOG_TEST_CASE("a fiber lets other fibers run even if its selects always find a ready case") {
  check_gives_way([] {
    return [channel = std::make_unique<weft::Channel<int>>(1)] {
      weft::select(weft::on_send(*channel, 1, [] {}),
                   weft::on_receive(*channel, [](std::optional<int>) {}));
    };
  });
}

HOG_TEST_CASE("a fiber lets other fibers run even if its ticker is always late") {
  check_gives_way(
      [] { return [ticker = std::make_unique<weft::Ticker>(1ns)] { ticker->wait(); }; });
}

// The pool is full, so that no tasks accumulate.
HOG_TEST_CASE("a fiber lets other fibers run even if its calls to submit() return at once") {
  weft::Event release;
  weft::FiberPool pool({.capacity = 1, .on_full = weft::OnFull::reject});
  CHECK(pool.submit([&] { release.wait(); }));
  check_gives_way([&] { return [&] { CHECK_FALSE(pool.submit([] {})); }; });
  release.set();
}

HOG_TEST_CASE(
    "a loop that regularly checks whether its fiber's turn is over lets other fibers run") {
  check_gives_way([] { return [] { weft::this_fiber::yield_if_due(); }; });
}

TEST_SUITE_END();

}  // namespace

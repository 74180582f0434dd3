// Tests bounded unfairness: a ready fiber runs, whatever other fibers do.
#include <chrono>
#include <semaphore>
#include <thread>
#include <vector>
#include <weft/channel.hpp>
#include <weft/detail/atomic.hpp>
#include <weft/go.hpp>
#include <weft/mutex.hpp>
#include <weft/semaphore.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include <atomic>

#include "tests/support/fiber_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::Channel;
using weft::Semaphore;

// Runs two fibers that wake each other through the worker's slot until a flag ends them.
class PingPong {
 public:
  void start() {
    players_.push_back(weft::spawn([this] { play(ping_, pong_); }));
    players_.push_back(weft::spawn([this] { play(pong_, ping_); }));
    ping_.release();
  }
  void stop() {
    stop_.store(true);
    for (auto& player : players_) player.join();
  }
  long rounds() const { return rounds_.load(); }

 private:
  void play(Semaphore& mine, Semaphore& other) {
    while (!stop_.load()) {
      mine.acquire();
      rounds_.fetch_add(1);
      other.release();
    }
    other.release();
  }

  Semaphore ping_{0};
  Semaphore pong_{0};
  std::atomic<bool> stop_{false};
  std::atomic<long> rounds_{0};
  std::vector<weft::JoinHandle<void>> players_;
};

TEST_SUITE_BEGIN("scheduler/fairness");

FIBER_TEST_CASE_WITH("two fibers that wake each other forever do not starve a third fiber",
                     {.workers = {1}}) {
  PingPong pair;
  pair.start();
  for (int i = 0; i < 100; ++i) weft::this_fiber::yield();
  const long before = pair.rounds();
  auto third = weft::spawn([] {});
  third.join();
  // The slot runs at most three times in a row, so the third fiber waits for only a few moves.
  CHECK(pair.rounds() - before < 200);
  pair.stop();
}

FIBER_TEST_CASE_WITH("two fibers that wake each other forever do not starve a timer",
                     {.workers = {1}}) {
  PingPong pair;
  pair.start();
  // At least one sleep must have moves: on a busy machine, its time may pass before it begins.
  long before = 0;
  do {
    before = pair.rounds();
    weft::this_fiber::sleep_for(5ms);
  } while (pair.rounds() == before);
  pair.stop();
}

THREAD_TEST_CASE(
    "pairs of fibers that wake each other do not starve fibers spawned by plain threads") {
  std::vector<PingPong> pairs(runtime.workers());
  runtime.run([&] {
    for (PingPong& pair : pairs) pair.start();
  });
  for (int i = 0; i < 20; ++i) weft::spawn([] {}).join();
  runtime.run([&] {
    for (PingPong& pair : pairs) pair.stop();
  });
}

FIBER_TEST_CASE_WITH("fibers that yield forever do not starve a timer or a new fiber",
                     {.workers = {1, 2}}) {
  std::atomic<bool> stop{false};
  std::vector<weft::JoinHandle<void>> yielding;
  for (int i = 0; i < 4; ++i) {
    yielding.push_back(weft::spawn([&] {
      while (!stop.load()) weft::this_fiber::yield();
    }));
  }
  weft::this_fiber::sleep_for(3ms);
  weft::spawn([] { weft::this_fiber::sleep_for(1ms); }).join();
  stop.store(true);
}

THREAD_TEST_CASE_WITH(
    "one fiber that yields forever does not starve fibers that a plain thread spawned",
    {.workers = {1}}) {
  std::atomic<bool> stop{false};
  const auto yielder = weft::spawn([&] {
    while (!stop.load()) weft::this_fiber::yield();
  });
  weft::spawn([] {}).join();
  weft::spawn([] { weft::this_fiber::sleep_for(1ms); }).join();
  stop.store(true);
}

FIBER_TEST_CASE_WITH("a fiber that yields runs after all other ready fibers of its worker",
                     {.workers = {1}}) {
  std::vector<int> order;
  std::vector<weft::JoinHandle<void>> fibers;
  for (int i = 0; i < 10; ++i) {
    fibers.push_back(weft::spawn([&order, i] { order.push_back(i); }));
  }
  weft::this_fiber::yield();
  CHECK(order == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
}

// The fiber that was woken last runs first, so a passed value is still in the cache. But it runs at
// most three times in a row while another fiber waits in the queue.
FIBER_TEST_CASE_WITH(
    "two fibers that wake each other run only a few times between two runs of another fiber",
    {.workers = {1}}) {
  PingPong pair;
  pair.start();
  for (int i = 0; i < 10; ++i) weft::this_fiber::yield();
  std::vector<long> seen;
  for (int i = 0; i < 1000; ++i) {
    seen.push_back(pair.rounds());
    weft::this_fiber::yield();
  }
  pair.stop();
  long longest = 0;
  for (std::size_t i = 1; i < seen.size(); ++i) longest = std::max(longest, seen[i] - seen[i - 1]);
  // One of the two may be in the queue between the slot's runs.
  CHECK(longest <= 8);
  CHECK(longest >= 1);
}

FIBER_TEST_CASE_WITH("a woken fiber runs before fibers that became ready earlier",
                     {.workers = {1}}) {
  Semaphore semaphore(0);
  std::vector<int> order;
  auto woken = weft::spawn([&] {
    semaphore.acquire();
    order.push_back(1);
  });
  weft::this_fiber::yield();
  auto queued = weft::spawn([&] { order.push_back(2); });
  semaphore.release();
  weft::this_fiber::yield();
  queued.join();
  woken.join();
  CHECK(order == std::vector<int>{1, 2});
}

FIBER_TEST_CASE_WITH("other workers run fibers that a long-running fiber has spawned",
                     {.workers = {2, 8}}) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> ran{0};
    for (int i = 0; i < 10; ++i) weft::go([&] { ran.fetch_add(1); });
    // This loop never parks, so only thieves can run the others. The test's deadline bounds it.
    while (ran.load() < 10) std::this_thread::yield();
  }
}

FIBER_TEST_CASE_WITH("other workers run fibers that a long-running fiber has woken",
                     {.workers = {2, 8}}) {
  for (int round = 0; round < 20; ++round) {
    Semaphore semaphore(0);
    weft::WaitGroup about_to_wait;
    about_to_wait.add();
    std::atomic<bool> ran{false};
    auto sleeper = weft::spawn([&] {
      about_to_wait.done();
      semaphore.acquire();
      ran.store(true);
    });
    about_to_wait.wait();
    semaphore.release();
    while (!ran.load()) std::this_thread::yield();
    sleeper.join();
  }
}

FIBER_TEST_CASE_WITH(
    "a busy worker takes and runs the only queued fiber of another worker that is computing",
    {.workers = {2}, .options = {.monitor = false}}) {
  std::atomic<bool> busy{false};
  std::atomic<bool> done{false};
  auto yielding = weft::spawn([&] {
    busy = true;
    while (!done) weft::this_fiber::yield();
  });
  while (!busy) weft::detail::pause_cpu();
  auto waiting = weft::spawn([&] { done = true; });
  while (!done) weft::detail::pause_cpu();
  yielding.join();
  waiting.join();
}

// A crowd yields on two workers until `keep_a_worker` has ended. That fiber ends after each fiber
// of the crowd has had a turn since its start, when `end` notifies it.
template <class Keep, class End>
void run_all_behind_one(Keep keep_a_worker, End end) {
  constexpr int kCrowd = 500;  // More than a worker runs between two looks.
  std::atomic<int> begun{0};
  std::atomic<bool> is_kept{false};
  std::atomic<int> ran{0};
  std::vector<weft::JoinHandle<void>> crowd;
  for (int i = 0; i < kCrowd; ++i) {
    crowd.push_back(weft::spawn([&] {
      begun.fetch_add(1);
      while (!is_kept) weft::this_fiber::yield();
      if (ran.fetch_add(1) + 1 == kCrowd) end();
      while (ran.load() < kCrowd) weft::this_fiber::yield();
    }));
  }
  while (begun.load() < kCrowd) weft::this_fiber::yield();
  is_kept = true;
  keep_a_worker();
  CHECK(ran.load() == kCrowd);
}

FIBER_TEST_CASE_WITH(
    "a worker with many fibers also runs fibers from the queue of a worker whose fiber is "
    "computing",
    {.workers = {2}, .options = {.monitor = false}}) {
  std::atomic<bool> over{false};
  run_all_behind_one(
      [&] {
        while (!over) weft::detail::pause_cpu();
      },
      [&] { over = true; });
}

FIBER_TEST_CASE_WITH(
    "a worker with many fibers also runs fibers from the queue of a worker whose fiber is blocked",
    {.workers = {2}, .options = {.monitor = false}}) {
  std::binary_semaphore over{0};
  run_all_behind_one([&] { over.acquire(); }, [&] { over.release(); });
}

FIBER_TEST_CASE_WITH("other workers run thousands of fibers that a long-running fiber has spawned",
                     {.workers = {2, 8}}) {
  std::atomic<int> ran{0};
  for (int i = 0; i < 3000; ++i) weft::go([&] { ran.fetch_add(1); });
  while (ran.load() < 3000) std::this_thread::yield();
}

// The timer is in the wheel of a worker that does not examine it.
FIBER_TEST_CASE_WITH(
    "another worker fires a timer that belongs to a worker whose fiber is computing",
    {.workers = {2, 8}}) {
  for (int round = 0; round < 2; ++round) {
    std::atomic<bool> fired{false};
    weft::WaitGroup asleep;
    asleep.add();
    auto sleeper = weft::spawn([&] {
      asleep.done();
      weft::this_fiber::sleep_for(10ms);
      fired.store(true);
    });
    asleep.wait();
    // This loop never parks: only another worker can fire the timer. The test's deadline bounds it.
    while (!fired.load()) std::this_thread::yield();
    sleeper.join();
  }
}

FIBER_TEST_CASE("each fiber gets a worker of its own when there are as many fibers as workers") {
  std::atomic<unsigned> present{0};
  std::vector<weft::JoinHandle<void>> fibers;
  const unsigned workers = runtime.workers();
  for (unsigned i = 0; i < workers; ++i) {
    // Each fiber ends when one of these fibers runs on every worker at once.
    fibers.push_back(weft::spawn([&, workers] {
      present.fetch_add(1);
      while (present.load() < workers) std::this_thread::yield();
    }));
  }
}

TEST_SUITE_END();

}  // namespace

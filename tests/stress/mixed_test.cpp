// Makes all kinds of calls at once, at random, and checks counts that must balance at the end.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>
#include <weft/channel.hpp>
#include <weft/condition_variable.hpp>
#include <weft/go.hpp>
#include <weft/mutex.hpp>
#include <weft/semaphore.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/stress/workload.hpp"
#include "tests/support/random.hpp"

namespace {

using namespace std::chrono_literals;
using weft::Channel;
using weft::ChannelStatus;
using weft::test::drawn_workers;
using weft::test::Progress;
using weft::test::Random;

// Holds shared objects, on which callers perform one random operation after the other. Every
// operation that gives or takes something is counted.
class World {
 public:
  explicit World(Progress& progress) : progress_(progress) {}

  void live(std::uint64_t stream) {
    Random random(stream);
    do {
      act(random);
      progress_.made();
    } while (!progress_.time_is_up());
  }
  void close() {
    for (auto& channel : channels_) channel.close();
  }
  void check_books() {
    for (auto& channel : channels_) {
      while (const std::optional<std::uint64_t> left = channel.receive()) received_ += *left;
    }
    CHECK(sent_.load() == received_.load());
    CHECK(guarded_ == entered_.load());
    CHECK(spawned_.load() == ended_.load());
    CHECK(permits_.available_hint() == kPermits);
  }

 private:
  static constexpr std::uint64_t kPermits = 4;

  static std::chrono::microseconds hardly_any_time(Random& random) {
    return std::chrono::microseconds(random.below(3));
  }

  void act(Random& random) {
    switch (random.below(10)) {
      case 0:
      case 1:
        return send(random);
      case 2:
      case 3:
        return receive(random);
      case 4:
        return enter(random);
      case 5:
        return acquire(random);
      case 6:
        return spawn_tree(random, 2);
      case 7:
        return meet(random);
      case 8:
        if (random.one_in(4)) return weft::this_fiber::sleep_for(hardly_any_time(random));
        return weft::this_fiber::yield();
      default:
        return throw_and_park(random);
    }
  }

  void send(Random& random) {
    auto& channel = channels_[random.below(channels_.size())];
    std::uint64_t value = 1 + random.below(1000);
    const std::uint64_t amount = value;
    if (channel.send_for(value, hardly_any_time(random)) == ChannelStatus::ok) sent_ += amount;
  }
  void receive(Random& random) {
    auto& channel = channels_[random.below(channels_.size())];
    std::optional<std::uint64_t> value;
    if (channel.receive_for(value, hardly_any_time(random)) == ChannelStatus::ok) {
      received_ += *value;
    }
  }
  void enter(Random& random) {
    if (random.one_in(2)) {
      mutex_.lock();
    } else if (!mutex_.try_lock_for(hardly_any_time(random))) {
      return;
    }
    ++guarded_;
    entered_.fetch_add(1);
    if (random.one_in(10)) weft::this_fiber::yield();
    condition_.notify_one();
    mutex_.unlock();
  }
  void meet(Random& random) {
    std::unique_lock lock(mutex_);
    ++guarded_;
    entered_.fetch_add(1);
    (void)condition_.wait_for(lock, hardly_any_time(random));
  }
  void acquire(Random& random) {
    const std::uint64_t count = 1 + random.below(kPermits);
    if (!permits_.try_acquire_for(hardly_any_time(random), count)) return;
    if (random.one_in(4)) weft::this_fiber::yield();
    permits_.release(count);
  }
  void spawn_tree(Random& random, int depth) {
    weft::WaitGroup group;
    const std::uint64_t children = 1 + random.below(3);
    group.add(children);
    for (std::uint64_t i = 0; i < children; ++i) {
      spawned_.fetch_add(1);
      const std::uint64_t stream = random();
      weft::go([this, &group, stream, depth] {
        Random own(stream);
        if (depth > 0 && own.one_in(3)) spawn_tree(own, depth - 1);
        if (own.one_in(3)) weft::this_fiber::yield();
        ended_.fetch_add(1);
        group.done();
      });
    }
    while (!group.wait_for(hardly_any_time(random))) {
      if (random.one_in(2)) return group.wait();
    }
  }
  void throw_and_park(Random& random) {
    const std::uint64_t mine = random();
    try {
      throw mine;
    } catch (std::uint64_t) {
      weft::this_fiber::yield();
      try {
        throw;
      } catch (std::uint64_t caught) {
        if (caught != mine) FAIL_CHECK("somebody else's exception");
      }
    }
  }

  Progress& progress_;
  std::array<Channel<std::uint64_t>, 3> channels_{
      Channel<std::uint64_t>(0), Channel<std::uint64_t>(1), Channel<std::uint64_t>(16)};
  weft::Mutex mutex_;
  weft::ConditionVariable condition_;
  weft::Semaphore permits_{kPermits};
  std::uint64_t guarded_ = 0;  // Under mutex_.
  std::atomic<std::uint64_t> entered_{0};
  std::atomic<std::uint64_t> sent_{0};
  std::atomic<std::uint64_t> received_{0};
  std::atomic<std::uint64_t> spawned_{0};
  std::atomic<std::uint64_t> ended_{0};
};

TEST_SUITE_BEGIN("stress/mixed");

THREAD_TEST_CASE_WITH(
    "random operations on all primitives neither lose nor duplicate a value, a permit or a fiber",
    {.workers = {2, drawn_workers(5)}, .monitored = true}) {
  Progress progress(runtime);
  World world(progress);
  std::vector<weft::JoinHandle<void>> fibers;
  for (std::uint64_t i = 0; i < 30; ++i) {
    fibers.push_back(weft::spawn([&world, i] { world.live(i); }));
  }
  std::vector<std::thread> threads;
  for (std::uint64_t i = 100; i < 103; ++i) threads.emplace_back([&world, i] { world.live(i); });
  for (std::thread& thread : threads) thread.join();
  for (auto& fiber : fibers) fiber.join();
  world.close();
  world.check_books();
  CHECK(progress.units() > 0);
}

TEST_SUITE_END();

}  // namespace

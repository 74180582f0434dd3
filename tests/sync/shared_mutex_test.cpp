#include <weft/shared_mutex.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>
#include <weft/condition_variable.hpp>
#include <weft/mutex.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"
#include "tests/sync/callers.hpp"

namespace {

using namespace std::chrono_literals;
using weft::SharedMutex;
using weft::test::await_parked;
using weft::test::kSlowdown;
using weft::test::run_mixed;

constexpr auto kToRead = "shared mutex, to read";
constexpr auto kToWrite = "shared mutex, to write";

TEST_SUITE_BEGIN("sync/shared_mutex");

THREAD_TEST_CASE(
    "writers of a shared mutex exclude all other owners, and readers exclude writers") {
  SharedMutex mutex;
  long counter = 0;  // Not atomic: lost updates and sanitizers reveal races.
  std::atomic<int> writers{0};
  std::atomic<int> readers{0};
  std::atomic<long> written{0};
  const int rounds = 2'000 / static_cast<int>(kSlowdown);
  run_mixed(6, 3, [&](int number) {
    weft::test::Random random(static_cast<std::uint64_t>(number));
    for (int i = 0; i < rounds; ++i) {
      if (random.one_in(3)) {
        const std::lock_guard lock(mutex);
        if (writers.fetch_add(1) != 0 || readers.load() != 0) FAIL_CHECK("a writer is not alone");
        ++counter;
        written.fetch_add(1);
        if (random.one_in(10)) weft::this_fiber::yield();
        writers.fetch_sub(1);
      } else {
        const std::shared_lock lock(mutex);
        readers.fetch_add(1);
        if (writers.load() != 0) FAIL_CHECK("a reader is inside with a writer");
        if (counter > written.load()) FAIL_CHECK("a reader saw what nobody wrote");
        if (random.one_in(10)) weft::this_fiber::yield();
        readers.fetch_sub(1);
      }
    }
  });
  CHECK(counter == written.load());
  CHECK(mutex.try_lock());
  mutex.unlock();
}

// Each reader unlocks only after all readers own the mutex at once.
THREAD_TEST_CASE(
    "several readers own a shared mutex at once, even if they had to wait for a writer") {
  constexpr int kFibers = 8;
  constexpr int kReaders = kFibers + 2;
  SharedMutex mutex;
  for (const bool behind_a_writer : {false, true}) {
    std::atomic<int> inside{0};
    if (behind_a_writer) mutex.lock();
    std::thread releaser([&] {
      if (!behind_a_writer) return;
      await_parked(runtime, kToRead, kFibers);
      mutex.unlock();
    });
    run_mixed(kFibers, kReaders - kFibers, [&](int) {
      const std::shared_lock lock(mutex);
      inside.fetch_add(1);
      while (inside.load() < kReaders) weft::this_fiber::yield();
    });
    releaser.join();
    CHECK(inside.load() == kReaders);
  }
}

THREAD_TEST_CASE(
    "try_lock() locks only a free shared mutex, and try_lock_shared() only a shared mutex without "
    "a writer") {
  SharedMutex mutex;
  CHECK(mutex.try_lock());
  CHECK(!mutex.try_lock());
  CHECK(!mutex.try_lock_shared());
  mutex.unlock();
  CHECK(mutex.try_lock_shared());
  CHECK(mutex.try_lock_shared());
  CHECK(!mutex.try_lock());
  mutex.unlock_shared();
  CHECK(!mutex.try_lock());
  mutex.unlock_shared();
  CHECK(weft::spawn([&] { return mutex.try_lock(); }).join());
  weft::spawn([&] { mutex.unlock(); }).join();
  CHECK(mutex.try_lock());
  mutex.unlock();
}

FIBER_TEST_CASE("a new reader gets the shared mutex only after a writer that is already waiting") {
  SharedMutex mutex;
  std::vector<char> order;  // Guarded by the mutex; a sole reader may write.
  mutex.lock_shared();
  auto writer = weft::spawn([&] {
    const std::lock_guard lock(mutex);
    order.push_back('w');
  });
  await_parked(runtime, kToWrite, 1);
  CHECK(!mutex.try_lock_shared());
  CHECK(!mutex.try_lock_shared_for(10us));
  auto reader = weft::spawn([&] {
    const std::shared_lock lock(mutex);
    order.push_back('r');
  });
  await_parked(runtime, kToRead, 1);
  mutex.unlock_shared();
  writer.join();
  reader.join();
  CHECK(order == std::vector<char>{'w', 'r'});
}

FIBER_TEST_CASE(
    "a shared mutex serves its queue in FIFO order and admits adjacent readers together") {
  SharedMutex mutex;
  std::atomic<int> turn{0};
  std::array<int, 6> turns{};
  mutex.lock();
  std::vector<weft::JoinHandle<void>> fibers;
  int readers = 0;
  int writers = 0;
  // The queue is: r r w r r w. Each reader waits for its neighbour while it owns the mutex.
  std::array<std::atomic<int>, 2> met{};
  for (std::size_t i = 0; i < 6; ++i) {
    if (i % 3 == 2) {
      fibers.push_back(weft::spawn([&, i] {
        const std::lock_guard lock(mutex);
        turns[i] = turn.fetch_add(1);
      }));
      await_parked(runtime, kToWrite, ++writers);
    } else {
      fibers.push_back(weft::spawn([&, i] {
        const std::shared_lock lock(mutex);
        met[i / 3].fetch_add(1);
        while (met[i / 3].load() < 2) weft::this_fiber::yield();
        turns[i] = turn.fetch_add(1);
      }));
      await_parked(runtime, kToRead, ++readers);
    }
  }
  mutex.unlock();
  for (auto& fiber : fibers) fiber.join();
  CHECK(turns[0] + turns[1] == 0 + 1);
  CHECK(turns[2] == 2);
  CHECK(turns[3] + turns[4] == 3 + 4);
  CHECK(turns[5] == 5);
}

THREAD_TEST_CASE("timed locks of a shared mutex give up at their deadlines, not before") {
  SharedMutex mutex;
  const auto attempt = [&](bool shared_too) {
    for (const auto span : {0us, 1us, 300us}) {
      const auto deadline = weft::Deadline::after(span);
      CHECK(!mutex.try_lock_until(deadline));
      CHECK(deadline.passed());
      if (shared_too) CHECK(!mutex.try_lock_shared_for(span));
    }
  };
  CHECK(mutex.try_lock_for(0ns));
  attempt(true);
  weft::spawn([&] { attempt(true); }).join();
  mutex.unlock();
  CHECK(mutex.try_lock_shared_until(std::chrono::steady_clock::now() + 1h));
  attempt(false);
  weft::spawn([&] { attempt(false); }).join();
  // Waiters that gave up do not affect the mutex any more.
  CHECK(mutex.try_lock_shared());
  mutex.unlock_shared();
  mutex.unlock_shared();
  CHECK(mutex.try_lock_for(1h));
  mutex.unlock();
}

FIBER_TEST_CASE(
    "when a writer gives up, the readers queued between it and the next writer get the lock") {
  SharedMutex mutex;
  std::stop_source impatience;
  mutex.lock_shared();
  auto impatient = weft::spawn([&] { return mutex.try_lock_until(impatience.get_token()); });
  await_parked(runtime, kToWrite, 1);
  std::vector<weft::JoinHandle<void>> readers;
  for (int i = 0; i < 3; ++i) {
    readers.push_back(weft::spawn([&] { const std::shared_lock lock(mutex); }));
  }
  await_parked(runtime, kToRead, 3);
  auto writer = weft::spawn([&] { const std::lock_guard lock(mutex); });
  await_parked(runtime, kToWrite, 2);
  auto last = weft::spawn([&] { const std::shared_lock lock(mutex); });
  await_parked(runtime, kToRead, 4);
  impatience.request_stop();
  CHECK(!impatient.join());
  for (auto& reader : readers) reader.join();  // The main fiber still reads.
  CHECK(!writer.done());
  CHECK(!last.done());
  mutex.unlock_shared();
  writer.join();
  last.join();
}

FIBER_TEST_CASE("a reader that gives up does not delay or admit the writer after it in the queue") {
  SharedMutex mutex;
  mutex.lock();
  std::stop_source impatience;
  auto impatient = weft::spawn([&] { return mutex.try_lock_shared_until(impatience.get_token()); });
  await_parked(runtime, kToRead, 1);
  auto writer = weft::spawn([&] { const std::lock_guard lock(mutex); });
  await_parked(runtime, kToWrite, 1);
  impatience.request_stop();
  CHECK(!impatient.join());
  CHECK(!writer.done());
  mutex.unlock();
  writer.join();
}

THREAD_TEST_CASE(
    "a waiter of a shared mutex never misses an unlock that races with other waiters' timeouts") {
  SharedMutex mutex;
  long counter = 0;
  std::atomic<long> written{0};
  std::atomic<int> writers{0};
  const int rounds = 2'000 / static_cast<int>(kSlowdown);
  run_mixed(6, 2, [&](int number) {
    weft::test::Random random(static_cast<std::uint64_t>(number));
    for (int i = 0; i < rounds; ++i) {
      const std::chrono::microseconds span(random.below(3));
      const bool patient = random.one_in(4);
      if (random.one_in(2)) {
        if (patient) {
          mutex.lock();
        } else if (!mutex.try_lock_for(span)) {
          continue;
        }
        if (writers.fetch_add(1) != 0) FAIL_CHECK("two writers");
        ++counter;
        written.fetch_add(1);
        if (random.one_in(8)) weft::this_fiber::yield();
        writers.fetch_sub(1);
        mutex.unlock();
      } else {
        if (patient) {
          mutex.lock_shared();
        } else if (!mutex.try_lock_shared_for(span)) {
          continue;
        }
        if (writers.load() != 0) FAIL_CHECK("a reader is inside with a writer");
        if (random.one_in(8)) weft::this_fiber::yield();
        mutex.unlock_shared();
      }
    }
  });
  CHECK(counter == written.load());
  CHECK(mutex.try_lock());
  mutex.unlock();
}

FIBER_TEST_CASE("readers and writers of a shared mutex do not starve each other") {
  SharedMutex mutex;
  std::atomic<bool> stop{false};
  std::vector<weft::JoinHandle<void>> greedy;
  for (int i = 0; i < 3; ++i) {
    greedy.push_back(weft::spawn([&] {
      // Three readers overlap, so that the mutex almost never is without a reader.
      while (!stop.load()) {
        const std::shared_lock lock(mutex);
        weft::this_fiber::yield();
      }
    }));
  }
  for (int i = 0; i < 50; ++i) {
    const std::lock_guard lock(mutex);
    weft::this_fiber::yield();
  }
  greedy.push_back(weft::spawn([&] {
    while (!stop.load()) {
      const std::lock_guard lock(mutex);
      weft::this_fiber::yield();
    }
  }));
  for (int i = 0; i < 50; ++i) {
    const std::shared_lock lock(mutex);
    weft::this_fiber::yield();
  }
  stop.store(true);
}

// The last owner destroys the mutex, while other unlock() calls may not have returned, and after
// waiters have given up.
THREAD_TEST_CASE("a shared mutex may be destroyed as soon as the last owner has unlocked it") {
  struct Shared {
    SharedMutex mutex;
    std::atomic<int> left{4};
  };
  const int rounds = 1'500 / static_cast<int>(kSlowdown);
  for (int round = 0; round < rounds; ++round) {
    auto* shared = new Shared;
    const auto use = [shared](bool writes, int span) {
      bool last = false;
      const std::chrono::microseconds limit(span);
      if (writes) {
        if (!shared->mutex.try_lock_for(limit)) shared->mutex.lock();
        last = shared->left.fetch_sub(1) == 1;
        shared->mutex.unlock();
      } else {
        if (!shared->mutex.try_lock_shared_for(limit)) shared->mutex.lock_shared();
        last = shared->left.fetch_sub(1) == 1;
        shared->mutex.unlock_shared();
      }
      if (!last) return;
      // Another owner may not have unlocked yet, so this caller locks as a writer and waits for it.
      shared->mutex.lock();
      shared->mutex.unlock();
      delete shared;
    };
    auto first = weft::spawn([&] { use(true, 0); });
    auto second = weft::spawn([&] { use(false, 1); });
    auto third = weft::spawn([&] { use(round % 2 == 0, 2); });
    use(round % 3 == 0, 1);
  }
}

FIBER_TEST_CASE("std::unique_lock and std::shared_lock lock and unlock a shared mutex") {
  SharedMutex mutex;
  {
    std::unique_lock lock(mutex);
    CHECK(lock.owns_lock());
    const std::unique_lock second(mutex, std::try_to_lock);
    CHECK(!second.owns_lock());
    const std::shared_lock third(mutex, 10us);
    CHECK(!third.owns_lock());
    lock.unlock();
    const std::unique_lock timed(mutex, std::chrono::steady_clock::now() + 1h);
    CHECK(timed.owns_lock());
  }
  {
    std::shared_lock lock(mutex);
    std::shared_lock second(mutex, std::try_to_lock);
    CHECK(second.owns_lock());
    second.unlock();
    CHECK(second.try_lock_until(std::chrono::system_clock::now() + 1h));
    swap(lock, second);
  }
  weft::Mutex other;
  const std::scoped_lock both(mutex, other);
  CHECK(!mutex.try_lock_shared());
}

FIBER_TEST_CASE(
    "a wait on a condition variable accepts an exclusive or a shared lock of a shared mutex") {
  SharedMutex mutex;
  weft::ConditionVariable condition;
  bool ready = false;
  std::vector<weft::JoinHandle<bool>> waiters;
  for (int i = 0; i < 4; ++i) {
    waiters.push_back(weft::spawn([&] {
      std::shared_lock lock(mutex);
      condition.wait(lock, [&] { return ready; });
      return lock.owns_lock() && ready;
    }));
  }
  waiters.push_back(weft::spawn([&] {
    std::unique_lock lock(mutex);
    condition.wait(lock, [&] { return ready; });
    return lock.owns_lock() && ready;
  }));
  await_parked(runtime, "condition variable", 5);
  {
    const std::lock_guard lock(mutex);
    ready = true;
  }
  condition.notify_all();
  for (auto& waiter : waiters) CHECK(waiter.join());
}

TEST_SUITE_END();

}  // namespace

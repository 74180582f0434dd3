#include <weft/condition_variable.hpp>

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

namespace {

using namespace std::chrono_literals;
using weft::ConditionVariable;
using weft::Mutex;
using weft::test::kSlowdown;

// Is a textbook bounded queue, which hangs after a lost notify.
class Queue {
 public:
  void push(int value) {
    std::unique_lock lock(mutex_);
    not_full_.wait(lock, [&] { return values_.size() < 3; });
    values_.push_back(value);
    not_empty_.notify_one();
  }
  int pop() {
    std::unique_lock lock(mutex_);
    not_empty_.wait(lock, [&] { return !values_.empty(); });
    const int value = values_.front();
    values_.pop_front();
    not_full_.notify_one();
    return value;
  }

 private:
  Mutex mutex_;
  ConditionVariable not_full_;
  ConditionVariable not_empty_;
  std::deque<int> values_;
};

TEST_SUITE_BEGIN("sync/condition_variable");

THREAD_TEST_CASE(
    "a bounded queue between fibers and plain threads neither loses nor duplicates a value") {
  Queue queue;
  const int each = 1'000 / static_cast<int>(kSlowdown);
  std::atomic<long> sum{0};
  std::vector<weft::JoinHandle<void>> fibers;
  const auto produce = [&] {
    for (int i = 1; i <= each; ++i) queue.push(i);
  };
  const auto consume = [&] {
    for (int i = 1; i <= each; ++i) sum.fetch_add(queue.pop());
  };
  for (int i = 0; i < 3; ++i) {
    fibers.push_back(weft::spawn(produce));
    fibers.push_back(weft::spawn(consume));
  }
  std::thread producer(produce);
  std::thread consumer(consume);
  producer.join();
  consumer.join();
  for (auto& fiber : fibers) fiber.join();
  CHECK(sum.load() == 4L * each * (each + 1) / 2);
}

THREAD_TEST_CASE("notify_all() wakes all waiters, both fibers and plain threads") {
  Mutex mutex;
  ConditionVariable condition;
  int waiting = 0;
  bool open = false;
  std::atomic<int> through{0};
  const auto wait = [&] {
    std::unique_lock lock(mutex);
    ++waiting;
    condition.wait(lock, [&] { return open; });
    through.fetch_add(1);
  };
  std::vector<weft::JoinHandle<void>> fibers;
  for (int i = 0; i < 20; ++i) fibers.push_back(weft::spawn(wait));
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(wait);
  for (bool all = false; !all;) {
    std::this_thread::yield();
    const std::lock_guard lock(mutex);
    all = waiting == 23;
  }
  CHECK(through.load() == 0);
  {
    const std::lock_guard lock(mutex);
    open = true;
  }
  condition.notify_all();
  for (std::thread& thread : threads) thread.join();
  for (auto& fiber : fibers) fiber.join();
  CHECK(through.load() == 23);
}

FIBER_TEST_CASE_WITH("notify_one() wakes only the caller that has waited longest",
                     {.workers = {1}}) {
  Mutex mutex;
  ConditionVariable condition;
  std::vector<int> order;
  std::vector<weft::JoinHandle<void>> fibers;
  for (int i = 0; i < 5; ++i) {
    fibers.push_back(weft::spawn([&, i] {
      std::unique_lock lock(mutex);
      condition.wait(lock);  // No condition: there are no spurious wakeups.
      order.push_back(i);
    }));
    weft::this_fiber::yield();
  }
  for (int i = 0; i < 5; ++i) {
    CHECK(order.size() == static_cast<std::size_t>(i));
    condition.notify_one();
    for (int turn = 0; turn < 5; ++turn) weft::this_fiber::yield();
  }
  for (auto& fiber : fibers) fiber.join();
  CHECK(order == std::vector<int>{0, 1, 2, 3, 4});
}

FIBER_TEST_CASE_WITH(
    "a caller that waits again is notified after all callers that have waited longer",
    {.workers = {1}}) {
  Mutex mutex;
  ConditionVariable condition;
  std::vector<int> order;
  std::vector<weft::JoinHandle<void>> fibers;
  for (int i = 0; i < 3; ++i) {
    fibers.push_back(weft::spawn([&, i] {
      std::unique_lock lock(mutex);
      for (int round = 0; round < 3; ++round) {
        condition.wait(lock);
        order.push_back(i);
      }
    }));
    weft::this_fiber::yield();
  }
  for (int i = 0; i < 9; ++i) {
    condition.notify_one();
    for (int turn = 0; turn < 3; ++turn) weft::this_fiber::yield();
  }
  for (auto& fiber : fibers) fiber.join();
  CHECK(order == std::vector<int>{0, 1, 2, 0, 1, 2, 0, 1, 2});
}

// The notifier itself waits at once, before the notified waiter has run.
FIBER_TEST_CASE(
    "a notification wakes the earlier waiter when the notifier waits right after the "
    "notification") {
  for (int round = 0; round < 500 / static_cast<int>(kSlowdown); ++round) {
    Mutex mutex;
    ConditionVariable condition;
    bool waiting = false;
    bool through = false;
    auto waiter = weft::spawn([&] {
      std::unique_lock lock(mutex);
      waiting = true;
      condition.wait(lock);
      through = true;
      condition.notify_one();
    });
    std::unique_lock lock(mutex);
    while (!waiting) {
      lock.unlock();
      weft::this_fiber::yield();
      lock.lock();
    }
    condition.notify_one();
    condition.wait(lock);
    CHECK(through);
  }
}

THREAD_TEST_CASE(
    "notifying a condition variable that has no waiters has no effect on later waiters") {
  Mutex mutex;
  ConditionVariable condition;
  condition.notify_one();
  condition.notify_all();
  const auto attempt = [&] {
    std::unique_lock lock(mutex);
    const auto deadline = weft::Deadline::after(300us);
    CHECK(condition.wait_until(lock, deadline) == std::cv_status::timeout);
    CHECK(deadline.passed());
    CHECK(lock.owns_lock());
    CHECK(!condition.wait_for(lock, 1us, [] { return false; }));
    CHECK(condition.wait_for(lock, 1us, [] { return true; }));
  };
  attempt();
  weft::spawn(attempt).join();
}

FIBER_TEST_CASE("a timed condition wait that is notified returns no_timeout") {
  Mutex mutex;
  ConditionVariable condition;
  bool waiting = false;
  auto waiter = weft::spawn([&] {
    std::unique_lock lock(mutex);
    waiting = true;
    return condition.wait_for(lock, 1h);
  });
  for (;;) {
    {
      const std::lock_guard lock(mutex);
      if (waiting) break;
    }
    weft::this_fiber::yield();
  }
  condition.notify_one();
  CHECK(waiter.join() == std::cv_status::no_timeout);
}

// A notify wakes the waiter that gets it, which is never one whose deadline has just ended the
// wait.
THREAD_TEST_CASE(
    "no notification of a condition variable is lost when waiters with and without short timeouts "
    "compete") {
  Mutex mutex;
  ConditionVariable condition;
  long tokens = 0;
  long taken = 0;
  bool stop = false;
  std::vector<weft::JoinHandle<void>> fibers;
  const int count = 2'000 / static_cast<int>(kSlowdown);
  for (int i = 0; i < 3; ++i) {
    fibers.push_back(weft::spawn([&] {
      std::unique_lock lock(mutex);
      for (;;) {
        condition.wait(lock, [&] { return tokens > 0 || stop; });
        if (tokens == 0) return;
        --tokens;
        ++taken;
      }
    }));
    fibers.push_back(weft::spawn([&, i] {
      weft::test::Random random(static_cast<std::uint64_t>(i));
      std::unique_lock lock(mutex);
      while (!stop) {
        const std::chrono::microseconds span(random.below(3));
        if (condition.wait_for(lock, span) == std::cv_status::no_timeout && tokens > 0) {
          --tokens;
          ++taken;
        }
        lock.unlock();
        weft::this_fiber::yield();
        lock.lock();
      }
    }));
  }
  for (int i = 0; i < count; ++i) {
    {
      const std::lock_guard lock(mutex);
      ++tokens;
    }
    condition.notify_one();
    if (i % 16 == 0) std::this_thread::yield();
  }
  {
    const std::lock_guard lock(mutex);
    stop = true;
  }
  condition.notify_all();
  for (auto& fiber : fibers) fiber.join();
  CHECK(taken + tokens == count);
  CHECK(tokens == 0);
}

FIBER_TEST_CASE("a condition variable may be destroyed once all waiters have been notified") {
  for (int round = 0; round < 500 / static_cast<int>(kSlowdown) + 10; ++round) {
    Mutex mutex;
    bool ready = false;
    auto condition = std::make_unique<ConditionVariable>();
    auto waiter = weft::spawn([&] {
      std::unique_lock lock(mutex);
      condition->wait(lock, [&] { return ready; });
      condition.reset();
    });
    auto notifier = weft::spawn([&] {
      const std::lock_guard lock(mutex);
      ready = true;
      condition->notify_all();
    });
    notifier.join();
    waiter.join();
  }
}

TEST_SUITE_END();

}  // namespace

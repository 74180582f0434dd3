// Tests a condition variable with a user's lock, whose unlock() does more than unlock.
#include <chrono>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <vector>
#include <weft/condition_variable.hpp>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

namespace {

using namespace std::chrono_literals;
using weft::ConditionVariable;
using weft::Mutex;
using weft::test::kSlowdown;

// Is a user's lock, which makes a call after each unlock.
struct EventfulLock {
  Mutex& mutex;
  std::function<void()> after_unlock;

  void lock() { mutex.lock(); }
  void unlock() {
    mutex.unlock();
    after_unlock();
  }
};

TEST_SUITE_BEGIN("sync/user_lock");

FIBER_TEST_CASE(
    "a notification ends a wait on a condition variable while the user-defined lock's unlock() is "
    "still parked") {
  Mutex mutex;
  ConditionVariable condition;
  weft::Event unlocked;
  weft::Event notified;
  EventfulLock lock{mutex, [&] {
                      unlocked.set();
                      notified.wait();
                    }};
  auto waiter = weft::spawn([&] {
    lock.lock();
    condition.wait(lock);
    mutex.unlock();
  });
  unlocked.wait();
  condition.notify_one();
  notified.set();
  waiter.join();

  unlocked.reset();
  notified.reset();
  auto timed = weft::spawn([&] {
    lock.lock();
    const std::cv_status status = condition.wait_for(lock, 1h);
    mutex.unlock();
    return status;
  });
  unlocked.wait();
  condition.notify_all();
  notified.set();
  CHECK(timed.join() == std::cv_status::no_timeout);
}

THREAD_TEST_CASE(
    "the unlock() of a user-defined lock may notify the condition variable that calls it") {
  Mutex mutex;
  ConditionVariable condition;
  EventfulLock lock{mutex, [&] { condition.notify_all(); }};
  const auto wait = [&] {
    lock.lock();
    condition.wait(lock);
    CHECK(condition.wait_for(lock, 1h) == std::cv_status::no_timeout);
    mutex.unlock();
  };
  wait();
  weft::spawn(wait).join();
}

FIBER_TEST_CASE(
    "a wait on a condition variable ends when its limit is reached during a user-defined lock's "
    "unlock()") {
  Mutex mutex;
  ConditionVariable condition;
  std::stop_source stop;
  // On a busy machine, the time may pass before unlock() runs; the test then retries with more
  // time.
  bool in_time = false;
  for (auto span = 1ms; !in_time; span *= 2) {
    const weft::Deadline deadline = weft::Deadline::after(span);
    EventfulLock slow{mutex, [&] {
                        in_time = !deadline.passed();
                        while (!deadline.passed()) weft::this_fiber::yield();
                      }};
    slow.lock();
    CHECK(condition.wait_until(slow, deadline) == std::cv_status::timeout);
    mutex.unlock();
  }
  EventfulLock stopping{mutex, [&] { stop.request_stop(); }};
  const std::stop_token token = stop.get_token();
  stopping.lock();
  CHECK(condition.wait_until(stopping, token) == std::cv_status::timeout);
  mutex.unlock();
  // A notify before a deadline or a stop request is not lost.
  std::stop_source other;
  EventfulLock both{mutex, [&] {
                      condition.notify_one();
                      other.request_stop();
                    }};
  const std::stop_token late = other.get_token();
  both.lock();
  CHECK(condition.wait_until(both, late) == std::cv_status::no_timeout);
  mutex.unlock();
}

FIBER_TEST_CASE(
    "the next waiter gets the notification when a user-defined lock's unlock() throws") {
  Mutex mutex;
  ConditionVariable condition;
  bool is_listed = false;
  weft::JoinHandle<void> patient;
  EventfulLock throwing{mutex, [&] {
                          patient = weft::spawn([&] {
                            std::unique_lock lock(mutex);
                            is_listed = true;
                            condition.wait(lock);
                          });
                          for (bool listed = false; !listed; weft::this_fiber::yield()) {
                            const std::lock_guard lock(mutex);
                            listed = is_listed;
                          }
                          condition.notify_one();  // Wakes the first, which throws.
                          throw std::runtime_error("unlock");
                        }};
  throwing.lock();
  CHECK_THROWS_WITH(condition.wait(throwing), "unlock");
  patient.join();
  // Without a notify, no waiter remains in the list either.
  EventfulLock hasty{mutex, [] { throw std::runtime_error("unlock"); }};
  hasty.lock();
  CHECK_THROWS_WITH((void)condition.wait_for(hasty, 1h), "unlock");
  condition.notify_all();
}

THREAD_TEST_CASE(
    "a condition variable loses no notification when its waiters' user-defined lock yields in "
    "unlock()") {
  Mutex mutex;
  ConditionVariable condition;
  long tokens = 0;
  long taken = 0;
  bool stop = false;
  std::vector<weft::JoinHandle<void>> fibers;
  const int count = 2'000 / static_cast<int>(kSlowdown);
  for (int i = 0; i < 6; ++i) {
    fibers.push_back(weft::spawn([&, i] {
      weft::test::Random random(static_cast<std::uint64_t>(i));
      EventfulLock lock{mutex, [&] {
                          for (auto turns = random.below(3); turns > 0; --turns) {
                            weft::this_fiber::yield();
                          }
                        }};
      lock.lock();
      while (tokens > 0 || !stop) {
        if (tokens > 0) {
          --tokens;
          ++taken;
        } else if (i % 2 == 0) {
          condition.wait(lock);
        } else {
          (void)condition.wait_for(lock, std::chrono::microseconds(random.below(100)));
        }
      }
      mutex.unlock();
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
  CHECK(taken == count);
  CHECK(tokens == 0);
}

TEST_SUITE_END();

}  // namespace

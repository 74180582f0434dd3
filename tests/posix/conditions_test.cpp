// Tests condition variables: fibers in a Scope and plain threads wait for each other.
#include <pthread.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <weft/context.hpp>
#include <weft/wait_group.hpp>

#include "tests/posix/both_ways.hpp"

namespace {

using namespace std::chrono_literals;
using weft::posix::Scope;
using weft::test::check_both_ways;
using weft::test::has_hooks;
using weft::test::Log;
using weft::test::moment;
using weft::test::note;
using weft::test::times_blocked;

TEST_SUITE_BEGIN("posix/conditions");

struct Condition {
  pthread_cond_t here{};
  explicit Condition(clockid_t clock, int shared = PTHREAD_PROCESS_PRIVATE) {
    pthread_condattr_t attributes;
    ::pthread_condattr_init(&attributes);
    ::pthread_condattr_setclock(&attributes, clock);
    ::pthread_condattr_setpshared(&attributes, shared);
    ::pthread_cond_init(&here, &attributes);
  }
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;
  ~Condition() { ::pthread_cond_destroy(&here); }
};

FIBER_TEST_CASE(
    "condition variable waits in a posix::Scope return the same results as on a thread") {
  if (!has_hooks()) return;
  check_both_ways([](Log& log) {
    pthread_mutexattr_t checked;
    ::pthread_mutexattr_init(&checked);
    ::pthread_mutexattr_settype(&checked, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_t mutex;
    ::pthread_mutex_init(&mutex, &checked);
    for (const clockid_t clock : {CLOCK_REALTIME, CLOCK_MONOTONIC}) {
      Condition condition(clock);
      for (const timespec& time : {moment(clock, 1), moment(clock, -1000), timespec{0, 0},
                                   timespec{-1, 0}, timespec{0, 1'000'000'000}}) {
        ::pthread_mutex_lock(&mutex);
        note(log, ::pthread_cond_timedwait(&condition.here, &mutex, &time));
        note(log, ::pthread_cond_clockwait(&condition.here, &mutex, clock, &time));
        note(log, ::pthread_mutex_unlock(&mutex));
      }
      note(log, ::pthread_cond_signal(&condition.here));
      note(log, ::pthread_cond_broadcast(&condition.here));
      // The thread that unlocks is not the owner.
      note(log, ::pthread_cond_wait(&condition.here, &mutex));
      note(log, ::pthread_mutex_unlock(&mutex));
      const timespec soon = moment(clock, 1);
      note(log, ::pthread_cond_clockwait(&condition.here, &mutex, 99, &soon));
    }
    ::pthread_mutex_destroy(&mutex);
  });
}

// Is a typical bounded queue.
class Queue {
 public:
  void push(int value) {
    std::unique_lock lock(mutex_);
    not_full_.wait(lock, [&] { return values_.size() < 4; });
    values_.push_back(value);
    not_empty_.notify_one();
  }
  int pop() {
    std::unique_lock lock(mutex_);
    while (values_.empty()) (void)not_empty_.wait_for(lock, 60s);
    const int value = values_.front();
    values_.pop_front();
    lock.unlock();
    not_full_.notify_one();
    return value;
  }

 private:
  std::mutex mutex_;
  std::condition_variable not_full_;
  std::condition_variable not_empty_;
  std::deque<int> values_;
};

// Without a monitor, a wait that blocked the worker would last forever.
FIBER_TEST_CASE_WITH("fibers of one worker wait for each other with pthread condition variables",
                     {.workers = {1}}) {
  if (!has_hooks()) return;
  Queue queue;
  int sum = 0;
  weft::WaitGroup group;
  for (int i = 0; i < 10; ++i) {
    group.go(weft::posix::in_scope([&] {
      for (int value = 0; value < 20; ++value) sum += queue.pop();
    }));
    group.go(weft::posix::in_scope([&] {
      for (int value = 0; value < 20; ++value) queue.push(value);
    }));
  }
  group.wait();
  CHECK(sum == 10 * 190);
}

FIBER_TEST_CASE(
    "a queue with pthread condition variables passes all values between fibers and threads") {
  if (!has_hooks()) return;
  Queue queue;
  constexpr int kValues = 200;
  constexpr int kCallers = 8;
  std::atomic<int> sum{0};
  const auto push_all = [&] {
    for (int i = 1; i <= kValues; ++i) queue.push(i);
  };
  const auto pop_all = [&] {
    for (int i = 1; i <= kValues; ++i) sum += queue.pop();
  };
  weft::WaitGroup group;
  for (int i = 0; i < kCallers; ++i) {
    group.go([&] {
      const Scope scope;
      pop_all();
    });
    group.go([&] {
      const Scope scope;
      push_all();
    });
  }
  std::thread pusher(push_all);
  std::thread popper(pop_all);
  group.wait();
  // The fiber may block its worker here, because the threads need no worker.
  pusher.join();
  popper.join();
  CHECK(sum == (kCallers + 1) * kValues * (kValues + 1) / 2);
}

FIBER_TEST_CASE("pthread_cond_broadcast() wakes all waiting fibers and threads") {
  if (!has_hooks()) return;
  std::mutex mutex;
  std::condition_variable condition;
  int waiting = 0;
  bool is_open = false;
  const auto wait = [&] {
    std::unique_lock lock(mutex);
    ++waiting;
    condition.wait(lock, [&] { return is_open; });
  };
  constexpr int kFibers = 100;
  weft::WaitGroup group;
  for (int i = 0; i < kFibers; ++i) {
    group.go([&] {
      const Scope scope;
      wait();
    });
  }
  std::thread thread(wait);
  const auto all_wait = [&] {
    const std::lock_guard lock(mutex);
    return waiting == kFibers + 1;
  };
  while (!all_wait()) weft::this_fiber::yield();
  {
    const std::lock_guard lock(mutex);
    is_open = true;
  }
  condition.notify_all();
  group.wait();
  thread.join();
}

FIBER_TEST_CASE(
    "a condition wait blocks its worker if the condition is process-shared or another lock is "
    "held") {
  if (!has_hooks()) return;
  const Scope scope;
  std::mutex mutex;
  std::mutex other;
  const auto wait = [&](pthread_cond_t& condition) {
    const std::lock_guard lock(mutex);
    const timespec soon = moment(CLOCK_REALTIME, 1);
    CHECK(::pthread_cond_timedwait(&condition, mutex.native_handle(), &soon) == ETIMEDOUT);
  };
  Condition plain(CLOCK_REALTIME);
  Condition shared(CLOCK_REALTIME, PTHREAD_PROCESS_SHARED);
  const char* const call = "pthread_cond_timedwait";
  const std::uint64_t locked_before = times_blocked(call, "another pthread lock is held");
  const std::uint64_t shared_before = times_blocked(call, "shared by processes");
  wait(plain.here);
  {
    const std::lock_guard lock(other);
    wait(plain.here);
  }
  wait(shared.here);
  CHECK(times_blocked(call, "another pthread lock is held") == locked_before + 1);
  CHECK(times_blocked(call, "shared by processes") == shared_before + 1);
}

FIBER_TEST_CASE(
    "the end of a context ends the current pthread condition wait, but not later timed waits") {
  if (!has_hooks()) return;
  const Scope scope;
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable condition;
  weft::Context context;
  const weft::ContextScope limited(context);
  std::thread canceller([&] {
    const std::lock_guard waits(mutex);  // The wait has released it.
    context.cancel();
  });
  condition.wait(lock);  // Nothing signals it.
  CHECK(lock.owns_lock());
  CHECK(context.until().is_over());
  // The context has ended, so only the wait's own time limit ends the wait.
  CHECK(condition.wait_for(lock, 2ms) == std::cv_status::timeout);
  lock.unlock();
  canceller.join();
}

TEST_SUITE_END();

}  // namespace

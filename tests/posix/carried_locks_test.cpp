// Tests locks that fibers carry into a park, and callers that wait for such locks.
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/posix/both_ways.hpp"
#include "tests/support/death_test.hpp"
#include "tests/support/parked.hpp"
#include "tests/support/skip.hpp"

namespace {

using weft::posix::Locks;
using weft::posix::Scope;
using weft::posix::ScopeOptions;
using weft::test::has_hooks;
using weft::test::moment;
using weft::test::Pair;
using weft::test::times_blocked;

TEST_SUITE_BEGIN("posix/carried");

constexpr ScopeOptions kCarries{.locks = Locks::carry};

bool carries_locks() {
#ifdef WEFT_TEST_CARRIES_LOCKS
  return has_hooks();
#else
  weft::test::skip("in this build no fiber carries locks");
  return false;
#endif
}

struct PthreadMutex {
  pthread_mutex_t here{};
  explicit PthreadMutex(int type) {
    pthread_mutexattr_t attributes;
    ::pthread_mutexattr_init(&attributes);
    ::pthread_mutexattr_settype(&attributes, type);
    ::pthread_mutex_init(&here, &attributes);
  }
  ~PthreadMutex() { ::pthread_mutex_destroy(&here); }
  PthreadMutex(const PthreadMutex&) = delete;
  PthreadMutex& operator=(const PthreadMutex&) = delete;
};
constexpr std::array kTypes{PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
                            PTHREAD_MUTEX_ERRORCHECK};

// Parks until the other end sends a byte.
void receive_byte(const Pair& pair) {
  char byte = 0;
  CHECK(::recv(pair.here(), &byte, 1, 0) == 1);
}
void send_byte(const Pair& pair) { CHECK(::send(pair.there(), "x", 1, 0) == 1); }

FIBER_TEST_CASE(
    "a recursive mutex never has two owners when fibers hold the mutex during calls that park") {
  if (!carries_locks()) return;
  std::recursive_mutex mutex;
  std::atomic<int> inside{0};
  std::atomic<int> two_owners{0};
  const std::uint64_t before = times_blocked("usleep", "a pthread lock is held");
  weft::WaitGroup group;
  for (int i = 0; i < 200; ++i) {
    group.go([&] {
      const Scope scope(kCarries);
      const std::lock_guard outer(mutex);
      two_owners += inside.fetch_add(1) == 0 ? 0 : 1;
      ::usleep(10);
      const std::lock_guard inner(mutex);
      ::usleep(1);
      inside.fetch_sub(1);
    });
  }
  group.wait();
  CHECK(two_owners == 0);
  CHECK(times_blocked("usleep", "a pthread lock is held") == before);
}

// Checks what other callers get while the holder is parked.
void try_carried(pthread_mutex_t& mutex) {
  CHECK(::pthread_mutex_trylock(&mutex) == EBUSY);
  CHECK(::pthread_mutex_unlock(&mutex) == EPERM);
  for (const timespec& time : {moment(CLOCK_REALTIME, 1), moment(CLOCK_REALTIME, -1000)}) {
    CHECK(::pthread_mutex_timedlock(&mutex, &time) == ETIMEDOUT);
  }
  const timespec soon = moment(CLOCK_MONOTONIC, 1);
  CHECK(::pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &soon) == ETIMEDOUT);
  const timespec bad{0, 1'000'000'000};
  CHECK(::pthread_mutex_timedlock(&mutex, &bad) == EINVAL);
}

// Fibers on all workers lock the mutex. If one of them blocked its worker, the holder could not
// run, because the test sends only after all fibers have begun.
FIBER_TEST_CASE(
    "fibers that lock a parked fiber's mutex park until it is released, whether or not their "
    "scopes carry locks") {
  if (!carries_locks()) return;
  for (const int type : kTypes) {
    PthreadMutex mutex(type);
    PthreadMutex other(type);
    Pair pair;
    std::atomic<int> begun{0};
    std::atomic<int> inside{0};
    weft::WaitGroup group;
    const auto enter = [&] {
      ++begun;
      errno = EDOM;
      CHECK(::pthread_mutex_lock(&mutex.here) == 0);
      CHECK(errno == EDOM);
      CHECK(++inside == 1);
      --inside;
      CHECK(::pthread_mutex_unlock(&mutex.here) == 0);
    };
    group.go([&] {
      const Scope scope(kCarries);
      CHECK(::pthread_mutex_lock(&mutex.here) == 0);
      ++inside;
      receive_byte(pair);
      --inside;
      // The holder is still the owner.
      const int again = ::pthread_mutex_trylock(&mutex.here);
      CHECK(again == (type == PTHREAD_MUTEX_RECURSIVE ? 0 : EBUSY));
      if (again == 0) CHECK(::pthread_mutex_unlock(&mutex.here) == 0);
      CHECK(::pthread_mutex_unlock(&mutex.here) == 0);
    });
    weft::test::await_parked(1);
    constexpr int kFibers = 8;
    for (int i = 0; i < kFibers; ++i) {
      group.go(enter);
      group.go(weft::posix::in_scope(enter));
      group.go(weft::posix::in_scope(kCarries, [&] {
        // A fiber takes its other locks into the wait.
        CHECK(::pthread_mutex_lock(&other.here) == 0);
        enter();
        CHECK(::pthread_mutex_unlock(&other.here) == 0);
      }));
    }
    std::thread thread([&] {
      CHECK(::pthread_mutex_trylock(&mutex.here) == EBUSY);
      enter();
    });
    try_carried(mutex.here);
    // One of the fibers waits for `other`, as does each of the eight fibers that lock it.
    while (begun < 2 * kFibers + 2) weft::this_fiber::yield();
    send_byte(pair);
    group.wait();
    thread.join();
    CHECK(::pthread_mutex_trylock(&mutex.here) == 0);
    CHECK(::pthread_mutex_unlock(&mutex.here) == 0);
  }
}

// The waiting fiber blocks its worker while the holder runs, and must leave it once the holder has
// parked: the holder needs a fiber of that worker.
FIBER_TEST_CASE_WITH(
    "a fiber that waits for a pthread lock parks as soon as the lock's holder parks",
    {.workers = {2}}) {
  if (!carries_locks()) return;
  std::mutex mutex;
  Pair pair;
  std::atomic<bool> is_held{false};
  std::atomic<bool> waits{false};
  auto holder = weft::spawn(weft::posix::in_scope(kCarries, [&] {
    const std::lock_guard lock(mutex);
    is_held = true;
    while (!waits) continue;  // This keeps the holder's worker.
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
    while (std::chrono::steady_clock::now() < end) continue;
    receive_byte(pair);
  }));
  while (!is_held) weft::this_fiber::yield();
  // Both fibers run on the other worker.
  std::atomic<bool> is_ready{false};
  auto sender = weft::spawn(weft::posix::in_scope([&] {
    is_ready = true;
    while (!waits) weft::this_fiber::yield();
    send_byte(pair);
  }));
  const Scope scope;
  while (!is_ready) weft::this_fiber::yield();
  waits = true;
  mutex.lock();
  mutex.unlock();
  holder.join();
  sender.join();
}

FIBER_TEST_CASE(
    "a fiber that unlocks a mutex and relocks it immediately does not starve a waiting fiber") {
  if (!carries_locks()) return;
  std::mutex mutex;
  std::atomic<bool> is_held{false};
  std::atomic<bool> had_it{false};
  weft::WaitGroup group;
  group.go([&] {
    const Scope scope(kCarries);
    // The loop has no bound: the test's deadline ends it if it fails.
    while (!had_it) {
      const std::lock_guard lock(mutex);
      is_held = true;
      ::usleep(10);
    }
  });
  while (!is_held) weft::this_fiber::yield();
  group.go([&] {
    const Scope scope(kCarries);
    const std::lock_guard lock(mutex);
    had_it = true;
  });
  group.wait();
}

FIBER_TEST_CASE(
    "readers share a pthread rwlock while they are parked, and a writer parks until the readers "
    "unlock") {
  if (!carries_locks()) return;
  pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
  Pair pair;
  std::atomic<int> readers{0};
  std::atomic<bool> is_writing{false};
  weft::WaitGroup group;
  for (int i = 0; i < 2; ++i) {
    group.go(weft::posix::in_scope(kCarries, [&] {
      CHECK(::pthread_rwlock_rdlock(&lock) == 0);
      ++readers;
      receive_byte(pair);
      CHECK(!is_writing);
      CHECK(::pthread_rwlock_unlock(&lock) == 0);
    }));
  }
  while (readers < 2) weft::this_fiber::yield();
  std::atomic<int> begun{0};
  for (int i = 0; i < 8; ++i) {
    group.go(weft::posix::in_scope(kCarries, [&] {
      ++begun;
      CHECK(::pthread_rwlock_wrlock(&lock) == 0);
      CHECK(!is_writing.exchange(true));
      ::usleep(1);
      is_writing = false;
      CHECK(::pthread_rwlock_unlock(&lock) == 0);
    }));
  }
  while (begun < 8) weft::this_fiber::yield();
  const timespec soon = moment(CLOCK_REALTIME, 1);
  CHECK(::pthread_rwlock_timedwrlock(&lock, &soon) == ETIMEDOUT);
  CHECK(::pthread_rwlock_tryrdlock(&lock) == 0);
  CHECK(::pthread_rwlock_unlock(&lock) == 0);
  send_byte(pair);
  send_byte(pair);
  group.wait();
}

FIBER_TEST_CASE(
    "waiting on a pthread condition variable releases its mutex and keeps the fiber's other "
    "locks") {
  if (!carries_locks()) return;
  std::mutex carried;
  std::mutex mutex;
  std::condition_variable condition;
  bool is_ready = false;
  const std::uint64_t before = times_blocked("pthread_cond_wait", "another pthread lock is held");
  weft::WaitGroup group;
  std::atomic<bool> waits{false};
  group.go(weft::posix::in_scope(kCarries, [&] {
    const std::lock_guard other(carried);
    std::unique_lock lock(mutex);
    waits = true;
    condition.wait(lock, [&] { return is_ready; });
  }));
  while (!waits) weft::this_fiber::yield();
  const Scope scope(kCarries);
  std::unique_lock lock(mutex);
  is_ready = true;
  CHECK(!carried.try_lock());
  condition.notify_one();
  lock.unlock();
  const std::lock_guard other(carried);
  group.wait();
  CHECK(times_blocked("pthread_cond_wait", "another pthread lock is held") == before);
}

FIBER_TEST_CASE(
    "a mutex that a fiber holds when the fiber ends stays locked, and later calls still park") {
  if (!carries_locks()) return;
  std::mutex mutex;
  weft::spawn(weft::posix::in_scope(kCarries, [&] {
    mutex.lock();
    ::usleep(1);
  })).join();
  CHECK(!mutex.try_lock());
  const std::uint64_t before = times_blocked("usleep", "a pthread lock is held");
  weft::WaitGroup group;
  for (int i = 0; i < 16; ++i) group.go(weft::posix::in_scope([] { ::usleep(1); }));
  group.wait();
  CHECK(times_blocked("usleep", "a pthread lock is held") == before);
}

#ifdef WEFT_TEST_CARRIES_LOCKS
DEATH_TEST_CASE(
    "the process ends when a fiber in a NoSwitch scope waits for a lock of a parked fiber",
    "weft-posix: a parked fiber of this worker holds a lock") {
  weft::run({.workers = 1}, [] {
    std::mutex mutex;
    auto holder = weft::spawn(weft::posix::in_scope(kCarries, [&] {
      const std::lock_guard lock(mutex);
      ::usleep(20'000'000);
    }));
    while (mutex.try_lock()) {
      mutex.unlock();
      weft::this_fiber::yield();
    }
    const weft::this_fiber::NoSwitch here;
    const std::lock_guard lock(mutex);
  });
}
#else
TEST_CASE(
    "the test case for lock waits in a NoSwitch scope is skipped when fibers cannot carry locks") {
  weft::test::skip("in this build no fiber carries locks");
}
#endif

TEST_SUITE_END();

}  // namespace

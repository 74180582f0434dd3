// Tests that misuse ends the program with a sentence that describes the misuse.
#include <unistd.h>
#include <cstring>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <weft/barrier.hpp>
#include <weft/broadcast.hpp>
#include <weft/channel.hpp>
#include <weft/condition_variable.hpp>
#include <weft/go.hpp>
#include <weft/latch.hpp>
#include <weft/mutex.hpp>
#include <weft/runtime.hpp>
#include <weft/shared_mutex.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/death_test.hpp"

namespace {

TEST_SUITE_BEGIN("death/misuse");

DEATH_TEST_CASE("unlocking a mutex that is not locked ends the process",
                "a mutex that is not locked was unlocked") {
  weft::run([] {
    weft::Mutex mutex;
    mutex.unlock();
  });
}

DEATH_TEST_CASE("unlocking a mutex twice from a plain thread ends the process",
                "a mutex that is not locked was unlocked") {
  weft::Mutex mutex;
  mutex.lock();
  mutex.unlock();
  mutex.unlock();
}

DEATH_TEST_CASE("calling unlock() on a shared mutex that readers hold ends the process",
                "a shared mutex that no writer had was unlocked") {
  weft::run([] {
    weft::SharedMutex mutex;
    mutex.lock_shared();
    mutex.unlock();
  });
}

DEATH_TEST_CASE("unlocking a shared mutex that is not locked ends the process",
                "a shared mutex that no writer had was unlocked") {
  weft::SharedMutex mutex;
  mutex.unlock();
}

DEATH_TEST_CASE("calling unlock_shared() on a shared mutex that a writer holds ends the process",
                "a shared mutex that no reader had was unlocked") {
  weft::SharedMutex mutex;
  mutex.lock();
  mutex.unlock_shared();
}

DEATH_TEST_CASE("calling unlock_shared() on a shared mutex that no reader holds ends the process",
                "a shared mutex that no reader had was unlocked") {
  weft::run([] {
    weft::SharedMutex mutex;
    mutex.lock_shared();
    mutex.unlock_shared();
    mutex.unlock_shared();
  });
}

DEATH_TEST_CASE("calling WaitGroup::done() more often than add() ends the process",
                "WaitGroup::done() was called more often than") {
  weft::run([] {
    weft::WaitGroup group;
    group.add(2);
    for (int i = 0; i < 3; ++i) group.done();
  });
}

DEATH_TEST_CASE("an extra call to WaitGroup::done() after a timed wait ends the process",
                "WaitGroup::done() was called more often than") {
  weft::run([] {
    weft::WaitGroup group;
    group.add();
    (void)group.wait_for(std::chrono::microseconds(1));
    group.done();
    group.done();
  });
}

DEATH_TEST_CASE("counting a latch down below 0 ends the process",
                "a Latch was counted down below 0: by 2, with 1 left") {
  weft::Latch latch(2);
  latch.count_down();
  latch.count_down(2);
}

DEATH_TEST_CASE("arriving at a barrier more often than expected ends the process",
                "more callers arrived at a Barrier than it expects: 3, with 2 missing of 2") {
  weft::run([] {
    weft::Barrier barrier(2);
    (void)barrier.arrive(3);
  });
}

DEATH_TEST_CASE("making a barrier for a negative number of callers ends the process",
                "a Barrier was made for a negative number") {
  const weft::Barrier<> barrier(-1);
}

DEATH_TEST_CASE("waiting on a condition variable without holding its mutex ends the process",
                "without its mutex locked") {
  weft::run([] {
    weft::Mutex mutex;
    weft::ConditionVariable condition;
    std::unique_lock lock(mutex, std::defer_lock);
    condition.wait(lock);
  });
}

DEATH_TEST_CASE("destroying a runtime from one of its own fibers ends the process",
                "a Runtime was destroyed by one of its own fibers") {
  auto* runtime = new weft::Runtime({.workers = 1});
  runtime->go([runtime] { delete runtime; });
  for (;;) pause();
}

DEATH_TEST_CASE("destroying a broadcast that still has a subscription ends the process",
                "a Broadcast was destroyed before its subscriptions: 1") {
  std::optional<weft::Broadcast<int>> broadcast(std::in_place, 1);
  const weft::Subscription<int> subscription = broadcast->subscribe();
  broadcast.reset();
}

TEST_SUITE_END();

}  // namespace

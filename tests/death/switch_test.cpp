// Tests places where a fiber must not leave its thread.
#include <mutex>
#include <shared_mutex>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>

#include "base/debug_locks.hpp"
#include "tests/support/death_test.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/skip.hpp"

namespace {

using weft::this_fiber::NoSwitch;

// Runs `body` in a fiber with a name.
template <class Body>
void run_named(Body body) {
  weft::run({.workers = 2}, [&] { weft::spawn({.name = "the culprit"}, body).join(); });
}

TEST_SUITE_BEGIN("death/no_switch");

DEATH_TEST_CASE("parking inside a NoSwitch scope ends the process",
                "'the culprit' parked or yielded inside a NoSwitch scope") {
  run_named([] {
    weft::Channel<int> channel;
    const NoSwitch here;
    (void)channel.receive();
  });
}

DEATH_TEST_CASE("yielding inside a NoSwitch scope ends the process, even if no other fiber exists",
                "'the culprit' parked or yielded inside a NoSwitch scope") {
  run_named([] {
    const NoSwitch here;
    weft::this_fiber::yield();
  });
}

DEATH_TEST_CASE("sleeping inside the outer of two NoSwitch scopes ends the process",
                "'the culprit' parked or yielded inside a NoSwitch scope") {
  run_named([] {
    const NoSwitch outer;
    { const NoSwitch inner; }
    weft::this_fiber::sleep_for(std::chrono::milliseconds(1));
  });
}

FIBER_TEST_CASE("a fiber in a NoSwitch scope may make any call that does not wait") {
  weft::Channel<int> channel(1);
  for (int i = 0; i < 100; ++i) {
    {
      const NoSwitch outer;
      const NoSwitch inner;
      CHECK(channel.try_send(i) == weft::ChannelStatus::ok);
      weft::go([] { weft::this_fiber::yield(); });
    }
    weft::this_fiber::yield();
    CHECK(channel.receive() == i);
  }
}

THREAD_TEST_CASE("a NoSwitch scope has no effect on a plain thread") {
  const NoSwitch here;
  weft::this_fiber::yield();
  CHECK(runtime.run([] { return 5; }) == 5);
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("death/debug_locks");

#ifdef WEFT_DEBUG_LOCKS
#define LOCKS_TEST_CASE(sentence, ...)                                               \
  DEATH_TEST_CASE(sentence, "'the culprit' parked or yielded with a mutex locked") { \
    run_named([] { __VA_ARGS__; });                                                  \
  }
#else
#define LOCKS_TEST_CASE(sentence, ...) \
  TEST_CASE(sentence) { weft::test::skip("this build is without -Ddebug_locks=true"); }
#endif

LOCKS_TEST_CASE("a fiber that yields while it holds a std::mutex is reported", {
  std::mutex mutex;
  const std::lock_guard lock(mutex);
  weft::this_fiber::yield();
})

LOCKS_TEST_CASE("a fiber that parks while it holds a std::mutex is reported", {
  std::mutex mutex;
  weft::Channel<int> channel;
  const std::unique_lock lock(mutex, std::try_to_lock);
  (void)channel.receive();
})

LOCKS_TEST_CASE("a fiber that sleeps while it holds a std::shared_mutex as a reader is reported", {
  std::shared_mutex mutex;
  const std::shared_lock lock(mutex);
  weft::this_fiber::sleep_for(std::chrono::milliseconds(1));
})

LOCKS_TEST_CASE("a fiber that ends while it holds a std::mutex is reported", {
  static std::mutex mutex;
  mutex.lock();
})

FIBER_TEST_CASE("a fiber that releases its locks before a switch is not reported") {
  std::mutex mutex;
  std::recursive_mutex recursive;
  std::shared_timed_mutex shared;
  for (int i = 0; i < 100; ++i) {
    {
      const std::lock_guard once(mutex);
      const std::lock_guard twice(recursive);
      const std::lock_guard again(recursive);
      const std::shared_lock reading(shared, std::chrono::seconds(1));
      CHECK((!weft::base::kDebugLocks || weft::base::locks_held() == 4));
    }
    weft::this_fiber::yield();
  }
}

TEST_SUITE_END();

}  // namespace

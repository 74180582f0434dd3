// When no fiber can ever run again, the process reports it and ends.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <weft/channel.hpp>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/mutex.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "base/shake.hpp"
#include "tests/support/deadlock.hpp"
#include "tests/support/death_test.hpp"
#include "tests/support/skip.hpp"

namespace {

// One fiber waits for a value that no fiber sends; the main fiber waits for its end.
void channel(unsigned workers) {
  weft::run({.workers = workers, .monitor = workers > 1}, [] {
    weft::Channel<int> channel;
    weft::spawn({.name = "the receiver"}, [&] { (void)channel.receive(); }).join();
  });
}

// Causes the same deadlock without random decisions, so that the receiver runs on the stack of its
// joiner.
void in_place(unsigned workers) {
  const weft::base::shake::Still still;
  channel(workers);
}

// Causes the same deadlock with a receiver that has started on a separate stack.
void handle(unsigned workers) {
  weft::run({.workers = workers, .monitor = workers > 1}, [] {
    weft::Channel<int> channel;
    bool started = false;
    auto receiver = weft::spawn([&] {
      started = true;
      (void)channel.receive();
    });
    while (!started) weft::this_fiber::yield();
    receiver.join();
  });
}

// Locks two mutexes in two orders.
void mutex(unsigned workers) {
  weft::run({.workers = workers, .monitor = workers > 1}, [] {
    weft::Mutex left;
    weft::Mutex right;
    weft::WaitGroup both;
    both.add(2);
    const auto lock_both = [&](weft::Mutex& first, weft::Mutex& second) {
      const std::lock_guard lock_first(first);
      both.done();
      both.wait();
      const std::lock_guard lock_second(second);
    };
    auto one = weft::spawn({.name = "left first"}, [&] { lock_both(left, right); });
    auto other = weft::spawn({.name = "right first"}, [&] { lock_both(right, left); });
    one.join();
  });
}

void wait_group(unsigned workers) {
  weft::run({.workers = workers, .monitor = workers > 1}, [] {
    weft::WaitGroup group;
    group.add();
    weft::spawn({.name = "the waiter"}, [&] { group.wait(); }).join();
  });
}

// The signal comes after the worker has searched for a deadlock at least once; on a slow machine it
// may come earlier, and the case tests less.
void only_a_signal_wakes() {
  static weft::Event done;
  signal(SIGALRM, [](int) { done.set(); });
  alarm(1);
  weft::run({.workers = 1}, [] { done.wait(); });
  (void)!write(STDERR_FILENO, "the handler has woken the fiber\n", 32);
  std::abort();
}

// Causes a deadlock whose handler makes a forbidden wait.
void with_handler(void (*wait)()) {
  weft::run({.workers = 2, .on_deadlock = [wait](std::string_view) { wait(); }}, [] {
    weft::Channel<int> channel;
    (void)channel.receive();
  });
}

TEST_SUITE_BEGIN("death/deadlock");

// The thread sanitizer starts a thread, and weft cannot rule out that this thread wakes a fiber.
#ifdef WEFT_TEST_TSAN
#define DEADLOCK_TEST_CASE(sentence, text, ...)                     \
  TEST_CASE(sentence) { weft::test::skip(weft::test::kNoVerdict); } \
  [[maybe_unused]] static void DOCTEST_ANONYMOUS(weft_body)() { __VA_ARGS__; }
#else
#define DEADLOCK_TEST_CASE(sentence, text, ...) \
  DEATH_TEST_CASE(sentence, text) { __VA_ARGS__; }
#endif

DEADLOCK_TEST_CASE("a runtime with one worker reports a deadlock",
                   "weft: deadlock: every fiber waits", channel(1))
DEADLOCK_TEST_CASE("a runtime with two workers reports a deadlock",
                   "weft: deadlock: every fiber waits", channel(2))
DEADLOCK_TEST_CASE("a runtime with eight workers reports a deadlock",
                   "weft: deadlock: every fiber waits", channel(8))
DEADLOCK_TEST_CASE("the deadlock report shows which fiber waits for a channel",
                   "'the receiver' is parked: channel receive", channel(1))
DEADLOCK_TEST_CASE("the deadlock report shows which fiber waits for the handle of another fiber",
                   "'main' is parked: join", handle(1))
DEADLOCK_TEST_CASE(
    "the deadlock report shows which fiber waits for a child that runs on the waiting fiber's "
    "stack",
    "'main' waits for one that runs on its stack: join", in_place(1))
DEADLOCK_TEST_CASE("the deadlock report shows a fiber that waits for a mutex",
                   "'left first' is parked: mutex", mutex(1))
DEADLOCK_TEST_CASE(
    "the deadlock report also shows the second of two fibers that wait for each other's mutexes",
    "'right first' is parked: mutex", mutex(2))
DEADLOCK_TEST_CASE(
    "a runtime with eight workers reports a deadlock of fibers that wait for each other's mutexes",
    "'right first' is parked: mutex", mutex(8))
DEADLOCK_TEST_CASE(
    "the deadlock report of a runtime with one worker shows which fibers wait for a wait group",
    "'the waiter' is parked: wait group", wait_group(1))
DEADLOCK_TEST_CASE(
    "the deadlock report of a runtime with two workers shows which fibers wait for a wait group",
    "'the waiter' is parked: wait group", wait_group(2))
DEADLOCK_TEST_CASE(
    "the deadlock report of a runtime with eight workers shows which fibers wait for a wait group",
    "'the waiter' is parked: wait group", wait_group(8))
DEADLOCK_TEST_CASE(
    "a fiber that only a signal handler can wake is excluded from the deadlock report",
    "the handler has woken the fiber", only_a_signal_wakes())
DEADLOCK_TEST_CASE("a deadlock handler that waits for an event ends the process",
                   "a handler of the runtime, which is no fiber, would have to wait: wait group",
                   with_handler([] {
                     weft::WaitGroup group;
                     group.add();
                     group.wait();
                   }))
DEADLOCK_TEST_CASE("a deadlock handler that sleeps ends the process",
                   "a handler of the runtime, which is no fiber, would have to wait: sleep",
                   with_handler([] { weft::this_fiber::sleep_for(std::chrono::seconds(1)); }))
DEADLOCK_TEST_CASE("a deadlock handler that waits with a deadline ends the process",
                   "a handler of the runtime, which is no fiber, would have to wait: channel",
                   with_handler([] {
                     weft::Channel<int> channel;
                     std::optional<int> value;
                     (void)channel.receive_for(value, std::chrono::seconds(1));
                   }))

TEST_SUITE_END();

}  // namespace

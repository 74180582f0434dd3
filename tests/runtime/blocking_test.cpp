#include <unistd.h>

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>
#include <weft/blocking.hpp>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/runtime.hpp>
#include <weft/semaphore.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/fiber_test.hpp"

TEST_SUITE_BEGIN("runtime/blocking");

using namespace std::chrono_literals;
using weft::blocking;

FIBER_TEST_CASE("blocking() runs its call on another thread and returns the result") {
  CHECK(weft::this_fiber::is_fiber());
  CHECK_FALSE(blocking([] { return weft::this_fiber::is_fiber(); }));
  CHECK(weft::this_fiber::is_fiber());
  CHECK(blocking([] { return 6 * 7; }) == 42);
  CHECK(*blocking([] { return std::make_unique<int>(3); }) == 3);
  int variable = 0;
  int& reference = blocking([&]() -> int& { return variable; });
  CHECK(&reference == &variable);
  int calls = 0;
  auto counter = [&calls] { ++calls; };
  blocking(counter);
  blocking(std::move(counter));
  CHECK(calls == 2);
}

FIBER_TEST_CASE("blocking() rethrows the exception of its call in the caller") {
  const auto fail = []() -> int { throw std::runtime_error("no such file"); };
  std::string what;
  try {
    (void)blocking(fail);
  } catch (const std::runtime_error& caught) {
    what = caught.what();
    // Throws another exception while this one is handled.
    CHECK_THROWS_AS(blocking([] { throw std::logic_error("inner"); }), std::logic_error);
  }
  CHECK(what == "no such file");
  CHECK(blocking([] { return 1; }) == 1);
}

FIBER_TEST_CASE("a worker runs other fibers while a fiber waits in blocking()") {
  // The test makes as many concurrent calls as possible, which a fiber ends. So no call may block a
  // worker.
  constexpr int kCalls = 20;
  weft::Semaphore inside(0);
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  std::vector<weft::JoinHandle<int>> calls;
  for (int i = 0; i < kCalls; ++i) {
    calls.push_back(weft::spawn([&, i] {
      return blocking([&, i] {
        inside.release();
        released.wait();
        return i;
      });
    }));
  }
  for (int i = 0; i < kCalls; ++i) inside.acquire();
  CHECK(runtime.stats().blocking_threads == kCalls);
  release.set_value();
  for (int i = 0; i < kCalls; ++i) CHECK(calls[static_cast<std::size_t>(i)].join() == i);
}

FIBER_TEST_CASE("one helper thread makes several blocking calls, one after another") {
  std::atomic<int> sum{0};
  for (int i = 0; i < 100; ++i) blocking([&] { sum += i; });
  CHECK(sum == 99 * 50);
  // A helper may not be idle again when the next call comes, and neither may the next helper. So
  // the calls continue until a helper is reused, which never happens if each helper makes only one
  // call.
  std::set<pid_t> helpers;
  while (helpers.insert(blocking([] { return ::gettid(); })).second) continue;
}

FIBER_TEST_CASE_WITH(
    "blocking calls beyond the maximum number of helper threads wait for a free thread",
    {.options = {.max_blocking_threads = 2}}) {
  constexpr int kCalls = 50;
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  weft::WaitGroup group;
  group.add(kCalls);
  for (int i = 0; i < kCalls; ++i) {
    weft::go([&] {
      blocking([&] {
        const int now = ++inside;
        int seen = most.load();
        while (seen < now && !most.compare_exchange_weak(seen, now)) {
        }
        std::this_thread::yield();
        --inside;
      });
      group.done();
    });
  }
  group.wait();
  CHECK(most <= 2);
  CHECK(runtime.stats().blocking_threads <= 2);
}

FIBER_TEST_CASE(
    "a blocking call may spawn, send, receive and call blocking() like a plain thread") {
  weft::Channel<int> requests;
  weft::Channel<int> answers;
  auto partner = weft::spawn([&] {
    for (const int value : requests) (void)answers.send(value + 1);
  });
  const int answer = blocking([&] {
    (void)requests.send(1);
    const int first = answers.receive().value_or(-1);
    auto fiber = weft::spawn([&] { return blocking([] { return 40; }); });
    // A call within a call runs in place.
    return first + fiber.join() + blocking([] { return 100; });
  });
  CHECK(answer == 142);
  requests.close();
  partner.join();
}

FIBER_TEST_CASE("a fiber may join a thread inside blocking() without blocking the fiber's worker") {
  std::promise<int> promise;
  std::thread thread([&] { CHECK(promise.get_future().get() == 5); });
  auto giver = weft::spawn([&] { promise.set_value(5); });
  blocking([&] { thread.join(); });
  CHECK_FALSE(thread.joinable());
  giver.join();
}

FIBER_TEST_CASE("await_future() returns the future's value or reference, or throws its exception") {
  std::promise<std::string> ready;
  ready.set_value("at once");
  CHECK(weft::await_future(ready.get_future()) == "at once");
  CHECK(runtime.stats().blocking_threads == 0);

  std::promise<int> later;
  std::future<int> future = later.get_future();
  auto giver = weft::spawn([&] { later.set_value(7); });
  CHECK(weft::await_future(std::move(future)) == 7);
  giver.join();

  std::promise<void> failing;
  auto thrower = weft::spawn([&, failed = failing.get_future()]() mutable {
    CHECK_THROWS_AS(weft::await_future(std::move(failed)), std::runtime_error);
  });
  failing.set_exception(std::make_exception_ptr(std::runtime_error("failed")));
  thrower.join();

  int variable = 0;
  CHECK(&weft::await_future(std::async(std::launch::async, [&]() -> int& { return variable; })) ==
        &variable);
  weft::await_future(std::async(std::launch::deferred, [&] { variable = 3; }));
  CHECK(variable == 3);
}

THREAD_TEST_CASE("blocking() on a plain thread runs its call on that thread") {
  const auto here = std::this_thread::get_id();
  CHECK(blocking([] { return std::this_thread::get_id(); }) == here);
  CHECK_THROWS_AS(blocking([] { throw std::runtime_error("failed"); }), std::runtime_error);
  CHECK(weft::await_future(std::async(std::launch::async, [] { return 4; })) == 4);
  CHECK(runtime.stats().blocking_threads == 0);
}

TEST_CASE("blocking() without a runtime runs its call and returns the result") {
  CHECK(blocking([] { return 9; }) == 9);
}

TEST_CASE("each runtime makes blocking calls on its own threads, which end with the runtime") {
  const weft::test::TestGuard guard("several runtimes");
  for (int round = 0; round < 50; ++round) {
    weft::Runtime outer({.workers = 1});
    weft::Runtime inner({.workers = 2});
    outer.run([&] { blocking([&] { inner.run([] { blocking([] {}); }); }); });
    CHECK(outer.stats().blocking_threads == 1);
    CHECK(inner.stats().blocking_threads == 1);
  }
}

TEST_SUITE_END();

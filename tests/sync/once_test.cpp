#include <weft/once.hpp>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include <weft/semaphore.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/sync/callers.hpp"

namespace {

using weft::Once;
using weft::test::await_parked;
using weft::test::run_mixed;

TEST_SUITE_BEGIN("sync/once");

THREAD_TEST_CASE(
    "only one of many callers of a Once runs the function, and all callers see its writes") {
  for (int round = 0; round < 50; ++round) {
    Once once;
    int runs = 0;  // Not atomic: the call orders it.
    CHECK(!once.done_hint());
    run_mixed(6, 2, [&](int) {
      once.call([&] {
        weft::this_fiber::yield();
        ++runs;
      });
      if (runs != 1 || !once.done_hint()) FAIL_CHECK("a call returned before it was done");
    });
    once.call([&] { ++runs; });
    CHECK(runs == 1);
  }
}

FIBER_TEST_CASE("callers of a Once park while another caller runs the function") {
  Once once;
  weft::Semaphore gate(0);
  std::atomic<int> through{0};
  auto runner = weft::spawn([&] { once.call([&] { gate.acquire(); }); });
  await_parked(runtime, "semaphore", 1);
  std::vector<weft::JoinHandle<void>> callers;
  for (int i = 0; i < 3; ++i) {
    callers.push_back(weft::spawn([&] {
      once.call([] { FAIL_CHECK("it ran twice"); });
      through.fetch_add(1);
    }));
  }
  await_parked(runtime, "once", 3);
  CHECK(through.load() == 0);
  CHECK(!once.done_hint());
  gate.release();
  runner.join();
  for (auto& caller : callers) caller.join();
  CHECK(through.load() == 3);
}

FIBER_TEST_CASE(
    "a caller of a Once whose function throws gets the exception, and the next caller runs its own "
    "function") {
  Once once;
  weft::Semaphore gate(0);
  std::atomic<int> runs{0};
  const auto fail = [&] {
    once.call([&] {
      runs.fetch_add(1);
      gate.acquire();
      throw std::runtime_error("not this time");
    });
  };
  std::vector<weft::JoinHandle<void>> failing;
  for (int i = 0; i < 3; ++i) failing.push_back(weft::spawn(fail));
  await_parked(runtime, "once", 2);
  await_parked(runtime, "semaphore", 1);
  CHECK(runs.load() == 1);
  // The callers run one after the other, and none is missed.
  gate.release(2);
  while (runs.load() < 3) weft::this_fiber::yield();
  auto last = weft::spawn([&] { once.call([&] { runs.fetch_add(1); }); });
  await_parked(runtime, "once", 1);
  gate.release();
  for (auto& fiber : failing) CHECK_THROWS_AS(fiber.join(), std::runtime_error);
  last.join();
  CHECK(runs.load() == 4);
  CHECK(once.done_hint());
}

THREAD_TEST_CASE(
    "the next call to a Once runs its function when the previous call's function has thrown") {
  Once once;
  CHECK_THROWS_AS(once.call([] { throw 7; }), int);
  CHECK(!once.done_hint());
  bool done = false;
  once.call([&] { done = true; });
  CHECK(done);
}

THREAD_TEST_CASE("call_once() passes arguments as std::call_once does") {
  Once once;
  std::string text;
  struct Append {
    void operator()(std::string& to, std::unique_ptr<std::string> what, int times) {
      for (int i = 0; i < times; ++i) to += *what;
    }
  };
  weft::call_once(once, Append{}, text, std::make_unique<std::string>("ab"), 2);
  weft::call_once(once, Append{}, text, std::make_unique<std::string>("cd"), 2);
  CHECK(text == "abab");
  Once second;
  weft::call_once(second, &std::string::push_back, text, '!');
  CHECK(text == "abab!");
}

THREAD_TEST_CASE("the function of a Once may use another Once") {
  Once outer;
  Once inner;
  int runs = 0;
  outer.call([&] { inner.call([&] { ++runs; }); });
  inner.call([&] { ++runs; });
  CHECK(runs == 1);
}

THREAD_TEST_CASE("a OnceValue is constructed once, at its first use") {
  std::atomic<int> made{0};
  weft::OnceValue value([&] {
    weft::this_fiber::yield();
    made.fetch_add(1);
    return std::string("made");
  });
  CHECK(made.load() == 0);
  run_mixed(6, 2, [&](int) {
    if (*value != "made" || value->size() != 4) FAIL_CHECK("another value");
  });
  CHECK(made.load() == 1);
  CHECK(&value.get() == &*value);
}

THREAD_TEST_CASE("a OnceValue whose construction threw is constructed again at the next use") {
  int attempts = 0;
  weft::OnceValue value([&] {
    if (++attempts < 3) throw std::runtime_error("not yet");
    return attempts;
  });
  CHECK_THROWS_AS((void)value.get(), std::runtime_error);
  CHECK_THROWS_AS((void)*value, std::runtime_error);
  CHECK(value.get() == 3);
  CHECK(value.get() == 3);
}

TEST_SUITE_END();

}  // namespace

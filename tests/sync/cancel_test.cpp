// Tests stop requests at each place where a caller may wait. (A Once is no such place, because its
// call always runs to the end.)
#include <atomic>
#include <chrono>
#include <cstdint>
#include <stop_token>
#include <thread>
#include <vector>
#include <weft/this_fiber.hpp>
#include <weft/until.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"
#include "tests/sync/callers.hpp"
#include "tests/sync/suspension_points.hpp"

namespace {

using namespace std::chrono_literals;
using weft::Deadline;
using weft::Until;
using weft::test::await_parked;
using weft::test::kSlowdown;
using weft::test::parked_fibers;
using weft::test::Random;

// Call it from a fiber or a plain thread, while no other caller uses the place.
template <class Place>
void wait_with_stop_requested() {
  Place place;
  std::stop_source stop;
  const std::stop_token token = stop.get_token();
  stop.request_stop();
  // The first wait does not consume the request.
  for (int i = 0; i < 3; ++i) CHECK(!place.wait(token));
  CHECK(!place.wait({Deadline::after(1h), token}));
  CHECK(!place.wait({Deadline::past(), token}));
  place.open();
  // A request does not stop a caller that need not wait.
  for (int i = 0; i < 3; ++i) CHECK(place.wait(token));
  CHECK(place.wait({Deadline::past(), token}));
  CHECK(place.is_whole());
}

template <class Place>
void wait_without_stop_request() {
  Place place;
  std::stop_source stop;
  const std::stop_token token = stop.get_token();
  for (const auto span : {0us, 1us, 300us}) {
    const Deadline deadline = Deadline::after(span);
    CHECK(!place.wait({deadline, token}));
    CHECK(deadline.passed());
  }
  // A token without a source has no effect.
  CHECK(!place.wait({Deadline::after(10us), std::stop_token()}));
  auto opener = weft::spawn([&] { place.open(); });
  CHECK(place.wait({Deadline::after(1h), token}));
  opener.join();
  CHECK(place.wait(token));
  CHECK(place.is_whole());
}

template <class Place>
void stop_while_parked(const weft::Runtime& runtime) {
  for (const bool has_deadline : {false, true}) {
    Place place;
    std::stop_source stop;
    const std::stop_token token = stop.get_token();
    const Deadline deadline = has_deadline ? Deadline::after(1h) : Deadline::never();
    const int before = parked_fibers(runtime, Place::kReason);
    auto waiter = weft::spawn([&] {
      CHECK(!place.wait({deadline, token}));
      CHECK(!place.wait({deadline, token}));
    });
    await_parked(runtime, Place::kReason, before + 1);
    CHECK(!waiter.done());
    stop.request_stop();
    waiter.join();
    place.open();
    CHECK(place.wait(Deadline::past()));
    CHECK(place.is_whole());
  }
}

// The test cannot see whether the thread is parked by then: a request may come at any moment.
template <class Place>
void stop_a_plain_thread() {
  for (int round = 0; round < 20; ++round) {
    Place place;
    std::stop_source stop;
    std::atomic<bool> begun{false};
    std::thread waiter([&, token = stop.get_token()] {
      begun.store(true);
      CHECK(!place.wait({Deadline::after(1h), token}));
    });
    while (!begun.load()) std::this_thread::yield();
    for (int i = 0; i < round; ++i) std::this_thread::yield();
    stop.request_stop();
    waiter.join();
    place.open();
    CHECK(place.is_whole());
  }
}

template <class Place>
void wake_while_parked(const weft::Runtime& runtime) {
  Place place;
  std::stop_source stop;
  const int before = parked_fibers(runtime, Place::kReason);
  auto waiter = weft::spawn([&, token = stop.get_token()] { return place.wait(token); });
  await_parked(runtime, Place::kReason, before + 1);
  place.open();
  CHECK(waiter.join());
  stop.request_stop();  // The wait has already ended.
  CHECK(place.is_whole());
}

// Deadlines and stop requests coincide with the wake; afterwards every caller still succeeds.
template <class Place>
void stop_at_random(std::uint64_t stream) {
  Random random(stream);
  const int rounds = 300 / static_cast<int>(kSlowdown);
  for (int round = 0; round < rounds; ++round) {
    Place place;
    std::vector<std::stop_source> stops(Place::kMostWaiters);
    std::vector<weft::JoinHandle<void>> waiters;
    for (const std::stop_source& stop : stops) {
      const std::chrono::microseconds span(random.below(3));
      const Deadline deadline = random.one_in(2) ? Deadline::after(span) : Deadline::never();
      waiters.push_back(weft::spawn([&place, deadline, token = stop.get_token()] {
        if (place.wait({deadline, token})) return;
        if (!token.stop_requested()) CHECK(deadline.passed());
        if (!place.wait({})) FAIL_CHECK("a wait without limits was ended");
      }));
    }
    auto opener = weft::spawn([&place, yields = random.below(4)] {
      for (std::uint64_t i = 0; i < yields; ++i) weft::this_fiber::yield();
      place.open();
    });
    for (std::stop_source& stop : stops) {
      if (random.one_in(3)) weft::this_fiber::yield();
      if (random.one_in(2)) stop.request_stop();
    }
    for (auto& waiter : waiters) waiter.join();
    opener.join();
    if (!place.is_whole()) FAIL_CHECK("something was lost or doubled");
  }
}

template <class Place>
void test_all(const weft::Runtime& runtime) {
  wait_with_stop_requested<Place>();
  weft::spawn([] { wait_with_stop_requested<Place>(); }).join();
  wait_without_stop_request<Place>();
  weft::spawn([] { wait_without_stop_request<Place>(); }).join();
  stop_while_parked<Place>(runtime);
  wake_while_parked<Place>(runtime);
  stop_a_plain_thread<Place>();
  stop_at_random<Place>(1);
  weft::spawn([] { stop_at_random<Place>(2); }).join();
}

TEST_SUITE_BEGIN("sync/cancel");

THREAD_TEST_CASE("a stop request ends a wait for a mutex") {
  test_all<weft::test::OfMutex>(runtime);
}
THREAD_TEST_CASE("a stop request ends a writer's wait for a shared mutex") {
  test_all<weft::test::OfWriter>(runtime);
}
THREAD_TEST_CASE("a stop request ends a reader's wait for a shared mutex") {
  test_all<weft::test::OfReader>(runtime);
}
THREAD_TEST_CASE("a stop request ends a wait on a condition variable") {
  test_all<weft::test::OfCondition>(runtime);
}
THREAD_TEST_CASE("a stop request ends a wait for permits of a semaphore") {
  test_all<weft::test::OfSemaphore>(runtime);
}
THREAD_TEST_CASE("a stop request ends a wait for a wait group") {
  test_all<weft::test::OfWaitGroup>(runtime);
}
THREAD_TEST_CASE("a stop request ends a wait for a latch") {
  test_all<weft::test::OfLatch>(runtime);
}
THREAD_TEST_CASE("a stop request ends a wait at a barrier") {
  test_all<weft::test::OfBarrier>(runtime);
}
THREAD_TEST_CASE("a stop request ends a wait for an event") {
  test_all<weft::test::OfEvent>(runtime);
}
THREAD_TEST_CASE("a stop request ends a wait for the next value of a LatestValue") {
  test_all<weft::test::OfLatestValue>(runtime);
}
THREAD_TEST_CASE("a stop request ends a wait to send to a broadcast") {
  test_all<weft::test::OfBroadcast>(runtime);
}
THREAD_TEST_CASE("a stop request ends a subscription's wait for a value") {
  test_all<weft::test::OfSubscription>(runtime);
}
THREAD_TEST_CASE("a stop request ends a wait in join()") { test_all<weft::test::OfJoin>(runtime); }

THREAD_TEST_CASE("a stop request ends a sleep") {
  const auto alone = [] {
    std::stop_source stop;
    const std::stop_token token = stop.get_token();
    const Deadline deadline = Deadline::after(300us);
    CHECK(weft::this_fiber::sleep_until(deadline, token));
    CHECK(deadline.passed());
    CHECK(!weft::this_fiber::sleep_for(1h, Deadline::after(10us)));
    stop.request_stop();
    for (int i = 0; i < 3; ++i) CHECK(!weft::this_fiber::sleep_for(1h, token));
    CHECK(!weft::this_fiber::sleep_for(1h, {Deadline::after(1h), token}));
    CHECK(weft::this_fiber::sleep_until(Deadline::past(), token));
  };
  alone();
  weft::spawn(alone).join();
  std::stop_source stop;
  const auto sleep = [token = stop.get_token()] {
    CHECK(!weft::this_fiber::sleep_for(1h, token));
    CHECK(!weft::this_fiber::sleep_for(1h, token));
  };
  auto sleeper = weft::spawn(sleep);
  std::thread thread(sleep);
  await_parked(runtime, "sleep", 1);
  stop.request_stop();
  sleeper.join();
  thread.join();
}

THREAD_TEST_CASE("one stop request ends the waits of many fibers and plain threads") {
  weft::Semaphore semaphore(0);
  weft::Mutex mutex;
  weft::Event event;
  mutex.lock();
  std::stop_source stop;
  std::vector<std::thread> threads;
  std::vector<weft::JoinHandle<void>> fibers;
  const auto wait = [&, token = stop.get_token()] {
    CHECK(!semaphore.try_acquire_until(token));
    CHECK(!mutex.try_lock_until(token));
    CHECK(!event.wait_until(token));
  };
  for (int i = 0; i < 3; ++i) threads.emplace_back(wait);
  for (int i = 0; i < 30; ++i) fibers.push_back(weft::spawn(wait));
  await_parked(runtime, "semaphore", 30);
  stop.request_stop();
  for (std::thread& thread : threads) thread.join();
  for (auto& fiber : fibers) fiber.join();
  mutex.unlock();
}

TEST_SUITE_END();

}  // namespace

#include "scheduler/blocking_pool.hpp"

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <vector>
#include <weft/detail/waiter.hpp>

#include "tests/support/fiber_test.hpp"

TEST_SUITE_BEGIN("scheduler/blocking_pool");

using namespace std::chrono_literals;
using weft::detail::BlockingCall;
using weft::scheduler::BlockingPool;

namespace {

// A call that the test's plain thread waits for.
struct Call : BlockingCall {
  explicit Call(std::function<void()> function)
      : BlockingCall{[](BlockingCall& self) noexcept { static_cast<Call&>(self).body(); }},
        body(std::move(function)) {
    waker = weft::detail::current();
  }
  void make_on(BlockingPool& pool) {
    pool.expect();
    pool.submit(*this);
  }
  static void wait() {
    weft::detail::park({[](void*) noexcept {}, nullptr}, weft::detail::WaitReason::blocking);
  }

  std::function<void()> body;
};

}  // namespace

TEST_CASE("a helper that was idle for long ends, and the next call starts another") {
  const weft::test::TestGuard guard("idle helpers");
  BlockingPool pool(4, 1us);
  for (int round = 0; round < 20; ++round) {
    bool made = false;
    Call call([&] { made = true; });
    call.make_on(pool);
    Call::wait();
    CHECK(made);
    // Hangs if it does not end.
    if (round % 2 == 0) {
      while (pool.size_hint() != 0) std::this_thread::yield();
    }
  }
}

TEST_CASE("the helper that became idle last makes the next call") {
  const weft::test::TestGuard guard("last in first out");
  BlockingPool pool(4);
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  std::thread::id longer;
  Call holds([&] {
    released.wait();
    longer = std::this_thread::get_id();
  });
  holds.make_on(pool);
  std::thread::id shorter;
  Call brief([&] { shorter = std::this_thread::get_id(); });
  brief.make_on(pool);
  Call::wait();
  CHECK(pool.size_hint() == 2);
  while (pool.idle_hint() != 1) std::this_thread::yield();
  release.set_value();
  Call::wait();
  while (pool.idle_hint() != 2) std::this_thread::yield();
  CHECK(shorter != longer);
  std::thread::id next;
  Call last([&] { next = std::this_thread::get_id(); });
  last.make_on(pool);
  Call::wait();
  CHECK(next == longer);
}

TEST_CASE("at the limit calls are made in their order") {
  const weft::test::TestGuard guard("limit");
  BlockingPool pool(1);
  std::promise<void> release;
  std::vector<int> order;
  Call first([&] { release.get_future().wait(); });
  first.make_on(pool);
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < 10; ++i) {
    calls.push_back(std::make_unique<Call>([&order, i] { order.push_back(i); }));
    calls.back()->make_on(pool);
  }
  CHECK(pool.size_hint() == 1);
  release.set_value();
  while (pool.idle_hint() != 1) std::this_thread::yield();
  Call::wait();  // All wakes have come, and a thread remembers them as one.
  CHECK(order == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
}

TEST_CASE("calls race with helpers that give up waiting, and none is forgotten") {
  const weft::test::TestGuard guard("races with idle helpers");
  const int rounds = static_cast<int>(3000 / weft::test::kSlowdown);
  BlockingPool pool(3, 1us);
  std::atomic<int> made{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int i = 0; i < rounds; ++i) {
        Call call([&] { ++made; });
        call.make_on(pool);
        Call::wait();
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(made == 4 * rounds);
  CHECK(pool.size_hint() <= 3);
}

TEST_SUITE_END();

#include "runtime/blocking/blocking_pool.hpp"

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <vector>
#include <weft/detail/waiter.hpp>

#include "tests/support/fiber_test.hpp"

TEST_SUITE_BEGIN("runtime/blocking_pool");

using namespace std::chrono_literals;
using weft::detail::BlockingCall;
using weft::runtime::BlockingPool;

namespace {

// Is a call that a plain thread makes on a pool. The thread waits for the result of the call.
class Call : BlockingCall {
 public:
  // Sets `handed_in` when the pool has the call.
  static void make_on(BlockingPool& pool, std::function<void()> function,
                      std::atomic<bool>* handed_in = nullptr) {
    CHECK(!pool.expect());
    make_expected(pool, std::move(function), handed_in);
  }
  // Makes a call that the pool already expects.
  static void make_expected(BlockingPool& pool, std::function<void()> function,
                            std::atomic<bool>* handed_in = nullptr) {
    Call call(pool, std::move(function));
    call.handed_in_ = handed_in;
    weft::detail::park({[](void* self) noexcept {
                          auto* parked = static_cast<Call*>(self);
                          // Nothing wakes the thread before it sleeps, and the thread runs this
                          // function itself.
                          parked->pool_.submit(*parked);
                          if (parked->handed_in_ != nullptr) *parked->handed_in_ = true;
                        },
                        &call},
                       weft::detail::WaitReason::blocking);
  }

 private:
  Call(BlockingPool& pool, std::function<void()> function)
      : BlockingCall{[](BlockingCall& self) noexcept { static_cast<Call&>(self).body_(); }},
        pool_(pool),
        body_(std::move(function)) {
    waker = weft::detail::current();
  }

  BlockingPool& pool_;
  std::function<void()> body_;
  std::atomic<bool>* handed_in_ = nullptr;
};

// Makes the call on a separate thread; the constructor returns when the pool has the call.
class CallingThread {
 public:
  CallingThread(BlockingPool& pool, std::function<void()> function)
      : thread_([this, &pool, function = std::move(function)] {
          Call::make_on(pool, function, &handed_in_);
        }) {
    while (!handed_in_) std::this_thread::yield();
  }
  ~CallingThread() { thread_.join(); }
  CallingThread(const CallingThread&) = delete;
  CallingThread& operator=(const CallingThread&) = delete;

 private:
  std::atomic<bool> handed_in_{false};
  std::thread thread_;
};

}  // namespace

TEST_CASE(
    "a helper thread ends after an idle period, and the next call starts another helper thread") {
  const weft::test::TestGuard guard("idle helpers");
  BlockingPool pool(4, 1us);
  for (int round = 0; round < 20; ++round) {
    bool made = false;
    Call::make_on(pool, [&] { made = true; });
    CHECK(made);
    // The test hangs if the helper does not end.
    if (round % 2 == 0) {
      while (pool.size_hint() != 0) std::this_thread::yield();
    }
  }
}

TEST_CASE("the helper thread that became idle last makes the next blocking call") {
  const weft::test::TestGuard guard("last in first out");
  BlockingPool pool(4, 1h);  // No helper ends during a wait.
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  std::atomic<bool> begun{false};
  std::thread::id longer;
  std::thread::id shorter;
  {
    const CallingThread holds(pool, [&] {
      begun = true;
      released.wait();
      longer = std::this_thread::get_id();
    });
    while (!begun) std::this_thread::yield();
    Call::make_on(pool, [&] { shorter = std::this_thread::get_id(); });
    CHECK(pool.size_hint() == 2);
    while (pool.idle_hint() != 1) std::this_thread::yield();
    release.set_value();
  }
  while (pool.idle_hint() != 2) std::this_thread::yield();
  CHECK(shorter != longer);
  std::thread::id next;
  Call::make_on(pool, [&] { next = std::this_thread::get_id(); });
  CHECK(next == longer);
}

TEST_CASE("a blocking call starts no helper thread while another helper thread is idle") {
  const weft::test::TestGuard guard("an idle helper is enough");
  BlockingPool pool(4, 1h);
  for (int i = 0; i < 10; ++i) {
    Call::make_on(pool, [] {});
    while (pool.idle_hint() != pool.size_hint()) std::this_thread::yield();
  }
  CHECK(pool.size_hint() == 1);
}

TEST_CASE("an idle helper thread that is reserved for an upcoming call does not end") {
  const weft::test::TestGuard guard("expected calls");
  BlockingPool pool(4, 1us);
  for (int round = 0; round < 20; ++round) {
    CHECK(!pool.expect());
    for (int i = 0; i < 100; ++i) std::this_thread::yield();
    CHECK(pool.size_hint() != 0);
    Call::make_expected(pool, [] {});
  }
}

TEST_CASE("blocking calls run in FIFO order when the maximum number of helper threads is reached") {
  const weft::test::TestGuard guard("limit");
  BlockingPool pool(1);
  std::promise<void> release;
  std::vector<int> order;  // The order of the only helper's calls.
  {
    std::vector<std::unique_ptr<CallingThread>> callers;
    callers.push_back(std::make_unique<CallingThread>(pool, [&] { release.get_future().wait(); }));
    for (int i = 0; i < 10; ++i) {
      callers.push_back(std::make_unique<CallingThread>(pool, [&order, i] { order.push_back(i); }));
    }
    CHECK(pool.size_hint() == 1);
    release.set_value();
  }
  CHECK(order == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
}

TEST_CASE("no blocking call is lost when calls race with the end of idle helper threads") {
  const weft::test::TestGuard guard("races with idle helpers");
  const int rounds = static_cast<int>(3000 / weft::test::kSlowdown);
  BlockingPool pool(3, 1us);
  std::atomic<int> made{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int i = 0; i < rounds; ++i) {
        Call::make_on(pool, [&] { ++made; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(made == 4 * rounds);
  CHECK(pool.size_hint() <= 3);
}

TEST_SUITE_END();

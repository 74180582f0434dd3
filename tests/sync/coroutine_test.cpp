#include <atomic>
#include <coroutine>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>
#include <weft/channel.hpp>
#include <weft/coroutine.hpp>
#include <weft/error.hpp>
#include <weft/go.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/sync/callers.hpp"

TEST_SUITE_BEGIN("sync/coroutine");

using namespace std::chrono_literals;
using weft::async_join;
using weft::async_receive;
using weft::async_send;
using weft::async_sleep;
using weft::Channel;
using weft::ChannelStatus;
using weft::test::await_parked;

namespace {

// Holds what all outcomes of tasks share.
template <class T>
struct Outcome {
  std::optional<T> value;
  void return_value(T result) { value.emplace(std::move(result)); }
  T take() { return std::move(*value); }
};
template <>
struct Outcome<void> {
  void return_void() const noexcept {}
  void take() const noexcept {}
};

// Is the smallest coroutine that can be awaited: the await starts it, and its end resumes the
// awaiter.
template <class T>
class Task {
 public:
  struct promise_type : Outcome<T> {
    std::exception_ptr exception;
    std::coroutine_handle<> awaiting;

    Task get_return_object() {
      return Task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct Continue {
        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> self) noexcept {
          return self.promise().awaiting;
        }
        void await_resume() noexcept {}
      };
      return Continue{};
    }
    void unhandled_exception() noexcept { exception = std::current_exception(); }
  };

  explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  ~Task() {
    if (handle_) handle_.destroy();
  }

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) noexcept {
    handle_.promise().awaiting = awaiting;
    return handle_;
  }
  T await_resume() {
    if (handle_.promise().exception) std::rethrow_exception(handle_.promise().exception);
    return handle_.promise().take();
  }

 private:
  std::coroutine_handle<promise_type> handle_;
};

// Is a coroutine that no caller awaits.
struct Detached {
  struct promise_type {
    Detached get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
  };
};

Task<long> sum_of(Channel<int>& channel) {
  long sum = 0;
  while (const auto value = co_await async_receive(channel)) sum += *value;
  co_return sum;
}
Task<void> send_all(Channel<int>& channel, int count) {
  for (int i = 0; i < count; ++i) CHECK(co_await async_send(channel, i) == ChannelStatus::ok);
}

Detached add_all(Channel<int>& channel, std::atomic<long>& sum, weft::WaitGroup& group) {
  while (const auto value = co_await async_receive(channel)) sum += *value;
  group.done();
}
Detached send_each(Channel<int>& channel, int count, weft::WaitGroup& group) {
  for (int i = 0; i < count; ++i) CHECK(co_await async_send(channel, i) == ChannelStatus::ok);
  group.done();
}

}  // namespace

FIBER_TEST_CASE("a coroutine receives a queued value without suspending") {
  Channel<int> channel(3);
  for (int i = 1; i <= 3; ++i) (void)channel.send(i);
  channel.close();
  const auto here = weft::this_fiber::id();
  const auto body = [&]() -> Task<std::uint64_t> {
    CHECK(co_await async_receive(channel) == 1);
    CHECK(co_await async_receive(channel) == 2);
    CHECK(co_await async_receive(channel) == 3);
    CHECK(co_await async_receive(channel) == std::nullopt);
    CHECK(co_await async_send(channel, 4) == ChannelStatus::closed);
    co_return weft::this_fiber::id();
  };
  CHECK(weft::await(body()) == here);
}

FIBER_TEST_CASE("a coroutine that has to wait continues in another fiber") {
  Channel<int> channel;
  const auto here = weft::this_fiber::id();
  const auto body = [&]() -> Task<std::uint64_t> {
    CHECK(co_await async_receive(channel) == 7);
    co_return weft::this_fiber::id();
  };
  const auto spawned = runtime.stats().spawned;
  auto sender = weft::spawn([&] {
    // Waits for the second fiber, in which the coroutine will continue.
    while (runtime.stats().spawned < spawned + 2) weft::this_fiber::yield();
    (void)channel.send(7);
  });
  const auto there = weft::await(body());
  CHECK(there != here);
  CHECK(there != 0);
  sender.join();
}

FIBER_TEST_CASE("coroutines send and receive through an unbuffered channel") {
  Channel<int> channel;
  auto sum = weft::spawn([&] { return weft::await(sum_of(channel)); });
  weft::await(send_all(channel, 100));
  channel.close();
  CHECK(sum.join() == 99 * 50);
}

FIBER_TEST_CASE("closing a channel resumes the coroutines that wait for it") {
  Channel<int> empty;
  Channel<int> full;
  const auto receive = [&]() -> Task<bool> {
    co_return (co_await async_receive(empty)).has_value();
  };
  const auto send = [&]() -> Task<ChannelStatus> { co_return co_await async_send(full, 1); };
  auto receiver = weft::spawn([&] { return weft::await(receive()); });
  auto sender = weft::spawn([&] { return weft::await(send()); });
  await_parked(runtime, "channel receive", 1);
  await_parked(runtime, "channel send", 1);
  empty.close();
  full.close();
  CHECK_FALSE(receiver.join());
  CHECK(sender.join() == ChannelStatus::closed);
}

FIBER_TEST_CASE("coroutines and fibers that share channels neither lose nor duplicate a value") {
  constexpr int kEach = 8;
  const int rounds = static_cast<int>(1000 / weft::test::kSlowdown);
  for (const std::size_t capacity : {0u, 1u, 10u}) {
    Channel<int> channel(capacity);
    std::atomic<long> sum{0};
    weft::WaitGroup senders;
    weft::WaitGroup receivers;
    senders.add(2 * kEach);
    receivers.add(2 * kEach);
    for (int i = 0; i < kEach; ++i) {
      add_all(channel, sum, receivers);
      send_each(channel, rounds, senders);
      weft::go([&] {
        for (const int value : channel) sum += value;
        receivers.done();
      });
      weft::go([&] {
        for (int value = 0; value < rounds; ++value) CHECK(channel.send(value));
        senders.done();
      });
    }
    senders.wait();
    channel.close();
    receivers.wait();
    CHECK(sum == 2L * kEach * rounds * (rounds - 1) / 2);
  }
}

FIBER_TEST_CASE("move-only values pass through a channel between coroutines unchanged") {
  Channel<std::unique_ptr<int>> channel;
  const auto send = [&]() -> Task<ChannelStatus> {
    co_return co_await async_send(channel, std::make_unique<int>(5));
  };
  auto sender = weft::spawn([&] { return weft::await(send()); });
  CHECK(**channel.receive() == 5);
  CHECK(sender.join() == ChannelStatus::ok);
}

FIBER_TEST_CASE("a coroutine that joins a fiber gets the fiber's value, exception or reference") {
  Channel<int> gate;
  int variable = 0;
  const auto body = [&]() -> Task<int> {
    auto waits = weft::spawn([&] { return gate.receive().value_or(-1); });
    auto opens = weft::spawn([&] { (void)gate.send(3); });
    const int value = co_await async_join(waits);
    CHECK_FALSE(waits.joinable());
    co_await async_join(std::move(opens));
    CHECK(&co_await async_join(weft::spawn([&]() -> int& { return variable; })) == &variable);
    bool caught = false;
    try {
      co_await async_join(weft::spawn([] { throw std::runtime_error("failed"); }));
    } catch (const std::runtime_error&) {
      caught = true;
    }
    CHECK(caught);
    co_return value;
  };
  CHECK(weft::await(body()) == 3);
}

FIBER_TEST_CASE("a coroutine that sleeps never wakes early") {
  const auto body = [&]() -> Task<void> {
    const auto start = std::chrono::steady_clock::now();
    co_await async_sleep(2ms);
    CHECK(std::chrono::steady_clock::now() - start >= 2ms);
    co_await async_sleep(-1ms);
    co_await weft::async_sleep_until(weft::Deadline::past());
  };
  weft::await(body());
}

FIBER_TEST_CASE("weft::await() throws the exceptions of a coroutine in the calling fiber") {
  Channel<int> channel;
  const auto fail = [&]() -> Task<int> {
    (void)co_await async_receive(channel);
    throw std::runtime_error("from afar");
  };
  const auto fail_at_once = []() -> Task<void> {
    throw std::logic_error("at once");
    co_return;
  };
  auto sender = weft::spawn([&] { (void)channel.send(1); });
  CHECK_THROWS_AS(weft::await(fail()), std::runtime_error);
  CHECK_THROWS_AS(weft::await(fail_at_once()), std::logic_error);
  sender.join();
}

FIBER_TEST_CASE("a coroutine resumed in a fiber may make calls that park") {
  Channel<int> first;
  Channel<int> second;
  const auto body = [&]() -> Task<int> {
    const int one = (co_await async_receive(first)).value_or(-1);
    CHECK(weft::this_fiber::is_fiber());
    weft::this_fiber::yield();
    const int two = second.receive().value_or(-1);
    auto handle = weft::spawn([] { return 4; });
    co_return one + two + handle.join();
  };
  auto sender = weft::spawn([&] {
    (void)first.send(1);
    (void)second.send(2);
  });
  CHECK(weft::await(body()) == 7);
  sender.join();
}

FIBER_TEST_CASE("weft::await() accepts every form of awaitable") {
  struct Ready {
    int value;
    bool await_ready() const noexcept { return true; }
    void await_suspend(std::coroutine_handle<>) const noexcept {}
    int& await_resume() noexcept { return value; }
  };
  // Its awaiter is destroyed when await() returns, so the result is no reference.
  struct ReadyValue : Ready {
    int await_resume() noexcept { return value; }
  };
  struct ByMember {
    ReadyValue operator co_await() && noexcept { return {{2}}; }
  };
  Ready ready{1};
  CHECK(&weft::await(ready) == &ready.value);
  CHECK(weft::await(Ready{3}) == 3);
  CHECK(weft::await(ByMember{}) == 2);
  weft::await(std::suspend_never{});
}

THREAD_TEST_CASE("weft::await() runs coroutines on plain threads") {
  Channel<int> numbers;
  std::thread sender([&] { weft::await(send_all(numbers, 100)); });
  std::thread closer([&] {
    sender.join();
    numbers.close();
  });
  CHECK(weft::await(sum_of(numbers)) == 99 * 50);
  closer.join();
}

TEST_CASE(
    "a coroutine that must wait gets an exception and leaves no waiter when there is no runtime") {
  Channel<int> channel(1);
  int code = 0;
  const auto body = [&]() -> Task<int> {
    // The send need not wait, so it needs no runtime.
    CHECK(co_await async_send(channel, 1) == ChannelStatus::ok);
    CHECK(co_await async_receive(channel) == 1);
    try {
      (void)co_await async_receive(channel);
    } catch (const std::system_error& caught) {
      if (caught.code() == weft::Errc::no_runtime) ++code;
    }
    try {
      co_await async_sleep(1h);
    } catch (const std::system_error& caught) {
      if (caught.code() == weft::Errc::no_runtime) ++code;
    }
    co_return code;
  };
  CHECK(weft::await(body()) == 2);
  // No waiter is in the list.
  int value = 5;
  CHECK(channel.try_send(value) == ChannelStatus::ok);
  CHECK(channel.size_hint() == 1);
}

FIBER_TEST_CASE_WITH("a coroutine that would wait gets an error when max_fibers is reached",
                     {.workers = {1}, .options = {.max_fibers = 300}}) {
  Channel<int> gate;
  weft::WaitGroup group;
  for (;;) {
    group.add();
    try {
      weft::go([&] {
        (void)gate.receive();
        group.done();
      });
    } catch (const std::system_error&) {
      group.done();
      break;
    }
  }
  const auto body = [&]() -> Task<std::error_code> {
    try {
      (void)co_await async_receive(gate);
    } catch (const std::system_error& caught) {
      co_return caught.code();
    }
    co_return std::error_code{};
  };
  CHECK(weft::await(body()) == weft::Errc::too_many_fibers);
  gate.close();
  group.wait();
}

TEST_SUITE_END();

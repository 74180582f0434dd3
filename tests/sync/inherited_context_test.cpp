// Tests the contexts of fibers, tasks and calls that a caller with a context starts.
#include <array>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>
#include <weft/blocking.hpp>
#include <weft/blocking_group.hpp>
#include <weft/channel.hpp>
#include <weft/context.hpp>
#include <weft/event.hpp>
#include <weft/fiber_local.hpp>
#include <weft/go.hpp>
#include <weft/parallel.hpp>
#include <weft/pool.hpp>
#include <weft/pool_task.hpp>
#include <weft/task_group.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/parked.hpp"

TEST_SUITE_BEGIN("sync/inherited_context");

using namespace std::chrono_literals;
using weft::Channel;
using weft::ChannelStatus;
using weft::Context;
using weft::ContextScope;
using weft::Deadline;
using weft::Errc;
using weft::Event;
using weft::FiberPool;
using weft::Until;

namespace {

const weft::ContextKey<std::string> kTraceOfTest;

// The receive has no limit, so only the caller's context can end it.
ChannelStatus receive_nothing(Channel<int>& channel) {
  std::optional<int> value;
  return channel.receive_until(value);
}

bool has_no_context() { return weft::this_fiber::context() == nullptr; }

}  // namespace

FIBER_TEST_CASE(
    "a deadline set by with_timeout() ends every wait that delays the caller, directly or "
    "indirectly") {
  Channel<int> never;
  const auto receive = [&] { return receive_nothing(never); };
  FiberPool pool({.capacity = 2});
  weft::BlockingGroup threads({.max_threads = 1});
  weft::with_timeout(1ms, [&] {
    CHECK(weft::spawn(receive).join() == ChannelStatus::timed_out);
    CHECK(weft::spawn({.name = "named"}, receive).join() == ChannelStatus::timed_out);
    CHECK(weft::spawn([&] { return weft::spawn(receive).join(); }).join() ==
          ChannelStatus::timed_out);
    CHECK(pool.async(receive).get() == ChannelStatus::timed_out);
    CHECK(pool.async({.weight = 2}, receive).get() == ChannelStatus::timed_out);
    CHECK(pool.try_async(receive).value.get() == ChannelStatus::timed_out);
    CHECK(pool.async([&](const std::stop_token&) { return receive(); }).get() ==
          ChannelStatus::timed_out);
    CHECK(pool.run(receive) == ChannelStatus::timed_out);
    CHECK(pool.run({.weight = 2}, receive) == ChannelStatus::timed_out);
    CHECK(pool.run_until(Until::never(), receive) == ChannelStatus::timed_out);
    CHECK(weft::blocking(receive) == ChannelStatus::timed_out);
    CHECK(threads.run(receive, Until::never()).value == ChannelStatus::timed_out);
  });
  CHECK(pool.async(has_no_context).get());
  CHECK(threads.run(has_no_context).value);
}

FIBER_TEST_CASE(
    "the end of a context ends all waits of fibers, tasks and loop steps that inherit it, at any "
    "depth") {
  Channel<int> never;
  const auto receive = [&] { return receive_nothing(never); };
  FiberPool pool({.capacity = 3});
  Context context;
  std::optional<ContextScope> scope(context);
  auto fiber = weft::spawn([&] {
    return weft::spawn(
               [&] { return pool.async([&] { return weft::spawn(receive).join(); }).get(); })
        .join();
  });
  auto steps = weft::spawn([&] {
    const std::array<int, 2> numbers{};
    return weft::transform(numbers, [&](int) { return receive(); }, {.max_running = 2});
  });
  auto in_group = weft::spawn([&] {
    weft::TaskGroup group;
    ChannelStatus status = ChannelStatus::ok;
    group.spawn([&] { status = weft::spawn(receive).join(); });
    group.wait();
    return status;
  });
  scope.reset();
  weft::test::await_parked(runtime, "channel receive", 4);
  CHECK(context.cancel());
  CHECK(fiber.join() == ChannelStatus::stopped);
  CHECK(steps.join() == std::vector{ChannelStatus::stopped, ChannelStatus::stopped});
  CHECK(in_group.join() == ChannelStatus::stopped);
}

FIBER_TEST_CASE("a fiber or a task has no context if it is detached or starts under NoCancel") {
  FiberPool pool({.capacity = 1, .on_full = weft::OnFull::caller_runs});
  Context context;
  const ContextScope scope(context);
  CHECK(weft::spawn([&] { return weft::this_fiber::context()->is_within(context); }).join());
  int without = 0;
  weft::WaitGroup ended;
  ended.add();
  weft::go([&] {
    if (has_no_context()) ++without;
    ended.done();
  });
  ended.wait();
  ended.go([&] {
    if (has_no_context()) ++without;
  });
  ended.wait();
  {
    // The second task runs in its caller, which has a context.
    Event release;
    Event occupied;
    CHECK(pool.submit([&] {
      if (has_no_context()) ++without;
      occupied.set();
      release.wait();
    }));
    occupied.wait();
    CHECK(pool.submit([&] {
      if (has_no_context()) ++without;
    }));
    release.set();
    pool.wait_idle();
  }
  CHECK(without == 4);
  const weft::this_fiber::NoCancel clean_up;
  CHECK(weft::spawn(has_no_context).join());
  CHECK(pool.async(has_no_context).get());
}

FIBER_TEST_CASE(
    "a fiber that outlasts its context's scope is cancelled and can still read the context's "
    "values") {
  FiberPool pool({.capacity = 1});
  Channel<int> never;
  Event over;
  const auto outlast = [&] {
    over.wait();
    const Context* const context = weft::this_fiber::context();
    CHECK(context->status() == Errc::cancelled);
    CHECK(*context->get(kTraceOfTest) == "inner");
    CHECK(context->token().stop_requested());
    CHECK(Context(context).is_over());
    CHECK(weft::spawn([&] { return receive_nothing(never); }).join() == ChannelStatus::stopped);
  };
  weft::JoinHandle<void> fiber;
  weft::JoinHandle<void> detached;
  weft::PoolTask<void> task;
  weft::WaitGroup of_detached;
  of_detached.add();
  {
    Context outer;
    outer.set(kTraceOfTest, "outer");
    // Its timer must not delay the end of the runtime.
    auto inner = std::make_unique<Context>(&outer, Deadline::after(1h));
    inner->set(kTraceOfTest, "inner");
    const ContextScope scope(*inner);
    fiber = weft::spawn(outlast);
    task = pool.async(outlast);
    weft::spawn([&, counted = std::shared_ptr<void>(nullptr, [&](void*) { of_detached.done(); })] {
      (void)weft::this_fiber::context()->token();
      outlast();
    }).detach();
  }
  over.set();
  fiber.join();
  task.get();
  of_detached.wait();
}

FIBER_TEST_CASE("a fiber may request its context's stop token while the context is ending") {
  const unsigned rounds = 200 / weft::test::kSlowdown;
  for (unsigned round = 0; round < rounds; ++round) {
    std::array<weft::JoinHandle<bool>, 2> fibers;
    {
      Context context(Deadline::after(1h));
      const ContextScope scope(context);
      for (auto& fiber : fibers) {
        fiber = weft::spawn([] {
          const std::stop_token token = weft::this_fiber::context()->token();
          Event never;
          return never.wait_until(token);
        });
      }
      if (round % 2 == 0) weft::this_fiber::yield();
    }
    for (auto& fiber : fibers) CHECK_FALSE(fiber.join());
  }
}

FIBER_TEST_CASE("a context's values may be set while fibers with that context read the values") {
  Context context;
  context.set(kTraceOfTest, "0");
  const ContextScope scope(context);
  std::vector<weft::JoinHandle<void>> readers;
  for (int i = 0; i < 4; ++i) {
    readers.push_back(weft::spawn([] {
      int newest = 0;
      while (newest < 50) {
        const int read = std::stoi(*weft::this_fiber::context()->get(kTraceOfTest));
        CHECK(read >= newest);
        newest = read;
        weft::this_fiber::yield();
      }
    }));
  }
  for (int i = 1; i <= 50; ++i) {
    context.set(kTraceOfTest, std::to_string(i));
    weft::this_fiber::yield();
  }
  for (auto& reader : readers) reader.join();
}

FIBER_TEST_CASE("a fiber releases its context before join() on the fiber returns") {
  const auto value = std::make_shared<int>(1);
  static const weft::ContextKey<std::shared_ptr<int>> held;
  std::optional<Context> context(std::in_place);
  context->set(held, value);
  std::optional<ContextScope> scope(*context);
  auto fiber = weft::spawn([] { return weft::this_fiber::context()->get(held) != nullptr; });
  scope.reset();
  context.reset();
  CHECK(fiber.join());
  CHECK(value.use_count() == 1);
}

FIBER_TEST_CASE("destroying a long chain of contexts needs no deep recursion") {
  constexpr int kLayers = weft::test::kSanitized ? 500 : 5000;
  std::vector<std::unique_ptr<Context>> layers;
  layers.push_back(std::make_unique<Context>());
  for (int i = 1; i < kLayers; ++i) {
    layers.push_back(std::make_unique<Context>(layers.back().get()));
  }
  Event over;
  std::optional<ContextScope> scope(*layers.back());
  auto last = weft::spawn([&] { over.wait(); });
  scope.reset();
  while (!layers.empty()) layers.pop_back();
  over.set();
  last.join();
}

THREAD_TEST_CASE("a fiber that a plain thread spawns has the thread's context") {
  Channel<int> never;
  Context context;
  const ContextScope scope(context);
  auto fiber = weft::spawn([&] { return receive_nothing(never); });
  weft::test::await_parked(runtime, "channel receive", 1);
  context.cancel();
  CHECK(fiber.join() == ChannelStatus::stopped);
}

FIBER_TEST_CASE(
    "the FiberLocal values of a fiber are destroyed after the fiber has left its context") {
  struct Last {
    ~Last() { CHECK(has_no_context()); }
  };
  static const weft::FiberLocal<Last> last;
  Context context;
  const ContextScope scope(context);
  weft::spawn([] { (void)last.get(); }).join();
}

TEST_SUITE_END();

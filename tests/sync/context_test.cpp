#include <weft/context.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>
#include <weft/blocking.hpp>
#include <weft/channel.hpp>
#include <weft/fiber_local.hpp>
#include <weft/select.hpp>
#include <weft/semaphore.hpp>
#include <weft/task_group.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"
#include "tests/support/sim_test.hpp"
#include "tests/sync/callers.hpp"

TEST_SUITE_BEGIN("sync/context");

using namespace std::chrono_literals;
using weft::Channel;
using weft::ChannelStatus;
using weft::Context;
using weft::Deadline;
using weft::Errc;
using weft::test::await_parked;

namespace {

std::exception_ptr exception_of(const char* text) {
  return std::make_exception_ptr(std::runtime_error(text));
}

}  // namespace

FIBER_TEST_CASE("cancelling a context ends the current and the later waits that use the context") {
  Context context;
  Channel<int> channel;
  CHECK_FALSE(context.is_over());
  auto waiting = weft::spawn([&] {
    std::optional<int> value;
    return channel.receive_until(value, context);
  });
  await_parked(runtime, "channel receive", 1);
  CHECK(context.cancel());
  CHECK_FALSE(context.cancel());
  CHECK(waiting.join() == ChannelStatus::stopped);
  std::optional<int> value;
  for (int i = 0; i < 3; ++i)
    CHECK(channel.receive_until(value, context) == ChannelStatus::stopped);
  CHECK(context.status() == Errc::cancelled);
  CHECK(context.status() == std::errc::operation_canceled);
  CHECK(context.cause() == nullptr);
  CHECK_THROWS_AS(context.throw_if_over(), std::system_error);
}

FIBER_TEST_CASE(
    "a context keeps its first cause of cancellation, and its children report the same cause") {
  Context parent;
  Context child(&parent);
  CHECK(parent.cancel(exception_of("the disk is full")));
  CHECK_FALSE(parent.cancel(exception_of("too late")));
  CHECK_FALSE(child.cancel());
  CHECK_THROWS_WITH(child.throw_if_over(), "the disk is full");
  CHECK(child.status() == Errc::cancelled);
  const Context late(&parent);
  CHECK_THROWS_WITH(late.throw_if_over(), "the disk is full");
}

FIBER_TEST_CASE(
    "a child context ends with its parent, and a parent continues after its child has ended") {
  Context parent;
  Context child(&parent);
  Context grandchild(&child);
  Context sibling(&parent);
  CHECK(child.cancel());
  CHECK(grandchild.is_over());
  CHECK_FALSE(parent.is_over());
  CHECK_FALSE(sibling.is_over());
  CHECK(parent.cancel());
  CHECK(sibling.token().stop_requested());
}

SIM_TEST_CASE("a context's deadline ends its waits and requests a stop through its stop tokens") {
  Context context(Deadline::after(1h));
  weft::Semaphore permits(0);
  CHECK_FALSE(permits.try_acquire_until(context));
  CHECK(context.is_over());
  CHECK(context.status() == Errc::timed_out);
  CHECK(context.status() == std::errc::timed_out);

  Context other(Deadline::after(1h));
  const std::stop_token token = other.token();
  CHECK_FALSE(weft::this_fiber::sleep_for(24h, token));
  CHECK(world.now() >= 2h);
  CHECK(world.now() < 2h + 1s);
  CHECK(token.stop_requested());
  CHECK(other.status() == Errc::timed_out);
}

SIM_TEST_CASE(
    "a call that can report cancellation but has no deadline ends when the caller's context ends") {
  Channel<int> channel;
  std::optional<int> value;
  const auto receive = [&] { return channel.receive_until(value); };
  CHECK(weft::with_timeout(1s, receive) == ChannelStatus::timed_out);
  CHECK(weft::with_timeout(1s, [&] { return channel.send_until(1); }) == ChannelStatus::timed_out);
  CHECK(weft::with_timeout(1s, [] { return weft::select_among({}); }) == weft::kNoCase);

  ChannelStatus status = ChannelStatus::ok;
  weft::TaskGroup group;
  group.spawn([&] { status = channel.receive_until(value); });
  group.spawn([] { throw std::runtime_error("the sibling fails"); });
  CHECK_THROWS_WITH(group.join(), "the sibling fails");
  CHECK(status == ChannelStatus::stopped);
  CHECK(world.now() < 4s);
}

SIM_TEST_CASE(
    "a call with an explicit Until continues to wait after the caller's context has ended") {
  Channel<int> channel;
  std::optional<int> value;
  auto sender = weft::spawn([&] {
    weft::this_fiber::sleep_for(1min);
    for (int i = 0; i < 2; ++i) (void)channel.send(i);
  });
  weft::with_timeout(1s, [&] {
    CHECK(channel.receive_until(value, weft::Until::never()) == ChannelStatus::ok);
    const weft::this_fiber::NoCancel clean_up;
    CHECK(channel.receive_until(value) == ChannelStatus::ok);
  });
}

FIBER_TEST_CASE("blocking() passes the caller's context to the helper thread") {
  const auto carried = [] { return weft::blocking([] { return weft::this_fiber::context(); }); };
  CHECK(carried() == nullptr);
  const Context context;
  const weft::ContextScope scope(context);
  CHECK(carried() == &context);
}

FIBER_TEST_CASE("the deadline of a child context is never after its parent's") {
  Context parent(Deadline::after(1h));
  CHECK(Context(&parent).deadline() == parent.deadline());
  CHECK(Context(&parent, Deadline::after(2h)).deadline() == parent.deadline());
  const Deadline earlier = Deadline::after(1min);
  CHECK(Context(&parent, earlier).deadline() == earlier);
  Context past(&parent, Deadline::past());
  CHECK(past.status() == Errc::timed_out);
  CHECK(Context(&past).status() == Errc::timed_out);
  CHECK_FALSE(parent.is_over());
}

FIBER_TEST_CASE(
    "destroying a Context requests a stop through every token that the context has given out") {
  std::stop_token token;
  {
    const Context context(Deadline::after(1h));
    token = context.token();
    CHECK_FALSE(token.stop_requested());
  }
  CHECK(token.stop_requested());
}

FIBER_TEST_CASE("a context value is found in the nearest context that has the value") {
  static const weft::ContextKey<std::string> user;
  static const weft::ContextKey<std::string> trace;
  Context parent;
  parent.set(user, "ada");
  parent.set(trace, "1");
  Context child(&parent);
  child.set(trace, "2");
  child.set(trace, "3");
  const Context grandchild(&child);
  CHECK(*grandchild.get(user) == "ada");
  CHECK(*grandchild.get(trace) == "3");
  CHECK(*parent.get(trace) == "1");
  CHECK(Context().get(user) == nullptr);
}

FIBER_TEST_CASE("a stop callback runs inside the call that cancels the context") {
  Context parent;
  Context child(&parent);
  int called = 0;
  const std::stop_callback callback(child.token(), [&] { ++called; });
  parent.cancel();
  CHECK(called == 1);
}

SIM_TEST_CASE("a fiber has the context of the innermost ContextScope until that scope ends") {
  CHECK(weft::this_fiber::context() == nullptr);
  CHECK(weft::this_fiber::until().is_never());
  Context outer;
  const weft::ContextScope outer_scope(outer);
  {
    Context inner(weft::this_fiber::context());
    const weft::ContextScope inner_scope(inner);
    CHECK(weft::this_fiber::context() == &inner);
    CHECK(inner.is_within(outer));
    CHECK_FALSE(outer.is_within(inner));
    outer.cancel();
    CHECK_FALSE(weft::this_fiber::sleep_for(1h, weft::this_fiber::until()));
    {
      const weft::this_fiber::NoCancel in_any_case;
      CHECK(weft::this_fiber::context() == nullptr);
      CHECK(weft::this_fiber::sleep_for(1h, weft::this_fiber::until()));
    }
    CHECK_FALSE(weft::this_fiber::sleep_for(1h, weft::this_fiber::until()));
  }
  CHECK(weft::this_fiber::context() == &outer);
}

FIBER_TEST_CASE(
    "context scopes and FiberLocal values that are nested in each other may end in any order") {
  static const weft::FiberLocal<int> before([] { return 1; });
  static const weft::FiberLocal<int> inside([] { return 2; });
  weft::spawn([] {
    CHECK(*before == 1);
    Context context;
    {
      const weft::ContextScope scope(context);
      CHECK(*inside == 2);
      CHECK(weft::this_fiber::context() == &context);
    }
    CHECK(weft::this_fiber::context() == nullptr);
    CHECK(*inside == 2);
    CHECK(*before == 1);
  }).join();
}

SIM_TEST_CASE(
    "the waits in nested with_timeout() calls end at the earlier of the inner and outer timeouts") {
  CHECK(weft::with_timeout(1h, [] { return 5; }) == 5);
  Channel<int> never;
  const ChannelStatus status = weft::with_timeout(1min, [&](Context& context) {
    std::optional<int> value;
    const ChannelStatus inner = weft::with_timeout(1h, [&] {
      CHECK(weft::this_fiber::until().deadline() == context.deadline());
      return never.receive_until(value, weft::this_fiber::until());
    });
    CHECK(context.status() == Errc::timed_out);
    return inner;
  });
  CHECK(status == ChannelStatus::timed_out);
  CHECK_THROWS_WITH(weft::with_timeout(1h, [] { throw std::runtime_error("passes through"); }),
                    "passes through");
  CHECK(weft::this_fiber::context() == nullptr);
}

THREAD_TEST_CASE("a plain thread can pass a context to a wait and cancel a context") {
  Context context;
  Channel<int> channel;
  auto waiting = weft::spawn([&] {
    std::optional<int> value;
    return channel.receive_until(value, context);
  });
  Context own(&context, Deadline::after(2ms));
  std::optional<int> value;
  CHECK(channel.receive_until(value, own) == ChannelStatus::timed_out);
  await_parked(runtime, "channel receive", 1);
  context.cancel();
  CHECK(waiting.join() == ChannelStatus::stopped);
  CHECK(own.status() == Errc::timed_out);
}

FIBER_TEST_CASE("contexts whose stop callbacks cancel each other are each cancelled once") {
  std::vector<std::unique_ptr<Context>> contexts;
  constexpr int kCount = weft::test::kSanitized ? 15 : 50;
  for (int i = 0; i < kCount; ++i) contexts.push_back(std::make_unique<Context>());
  std::vector<std::unique_ptr<std::stop_callback<std::function<void()>>>> links;
  std::atomic<int> cancelled{0};
  for (std::size_t i = 0; i < contexts.size(); ++i) {
    Context& next = *contexts[(i + 1) % contexts.size()];
    links.push_back(std::make_unique<std::stop_callback<std::function<void()>>>(
        contexts[i]->token(), [&next, &cancelled] {
          if (next.cancel()) ++cancelled;
        }));
  }
  CHECK(contexts[7]->cancel());
  CHECK(cancelled == kCount - 1);
  for (const auto& context : contexts) CHECK(context->is_over());
}

FIBER_TEST_CASE(
    "every child context is cancelled when children are made and destroyed during the cancellation "
    "of their parent") {
  const int rounds = static_cast<int>(400 / weft::test::kSlowdown);
  for (int round = 0; round < rounds; ++round) {
    Context parent;
    std::atomic<bool> cancelled{false};
    auto maker = weft::spawn([&] {
      for (int i = 0; i < 50; ++i) {
        const bool before = cancelled;
        const Context child(&parent);
        if (before) CHECK(child.is_over());
        weft::this_fiber::yield();
      }
      if (parent.is_over()) CHECK(Context(&parent).is_over());
    });
    auto canceller = weft::spawn([&] {
      weft::this_fiber::yield();
      parent.cancel();
      cancelled = true;
    });
    maker.join();
    canceller.join();
  }
}

SIM_TEST_CASE(
    "a hundred nested contexts end when the outermost context is cancelled or times out") {
  // Each context takes some of the canceller's stack, and much more under a sanitizer.
  const int count = weft::test::kSanitized ? 20 : 100;
  for (const bool by_deadline : {false, true}) {
    std::vector<std::unique_ptr<Context>> layers;
    layers.push_back(
        std::make_unique<Context>(by_deadline ? Deadline::after(10min) : Deadline::never()));
    for (int i = 0; i < count; ++i) {
      layers.push_back(std::make_unique<Context>(
          layers.back().get(), i % 3 == 0 ? Deadline::after(1h) : Deadline::never()));
    }
    auto waiting =
        weft::spawn([&] { return weft::this_fiber::sleep_for(1h, layers.back()->until()); });
    if (!by_deadline) {
      weft::sim::settle();
      layers.front()->cancel();
    }
    CHECK_FALSE(waiting.join());
    for (const auto& layer : layers) {
      CHECK(layer->status() == (by_deadline ? Errc::timed_out : Errc::cancelled));
    }
    while (!layers.empty()) layers.pop_back();
  }
}

FIBER_TEST_CASE(
    "all contexts of a tree end when many contexts of the tree are cancelled concurrently") {
  const int rounds = static_cast<int>(300 / weft::test::kSlowdown);
  for (int round = 0; round < rounds; ++round) {
    Context root;
    std::atomic<int> ended{0};
    std::vector<weft::JoinHandle<void>> callers;
    for (int i = 0; i < 8; ++i) {
      callers.push_back(weft::spawn([&, i] {
        Context own(&root,
                    i % 3 == 0 ? Deadline::after(std::chrono::microseconds(i)) : Deadline::never());
        Context inner(&own);
        (void)inner.token();
        if (i == 5) root.cancel(exception_of("root"));
        CHECK_FALSE(weft::this_fiber::sleep_for(1h, inner));
        CHECK(inner.is_over());
        ++ended;
      }));
    }
    for (auto& caller : callers) caller.join();
    CHECK(ended == 8);
  }
}

TEST_SUITE_END();

// The detour that may hang in front of a parked stack.
#include "fibers/gate.hpp"

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "fibers/backtrace.hpp"
#include "tests/fibers/stack_tools.hpp"

namespace {

using weft::detail::relaxed;
using weft::fibers::Context;
using weft::fibers::Gate;
using weft::fibers::kHasGates;
using weft::fibers::StackSpace;
using weft::test::Coroutine;

constexpr std::size_t kLobby = 16 << 10;
struct Hung {
  Gate gate;
  alignas(16) std::array<char, kLobby> lobby{};

  void in_front_of(weft::fibers::Stack& stack) {
    gate.lead_to(stack.context.load(relaxed), lobby.data() + kLobby);
    stack.context.store(gate.entrance(), relaxed);
  }
};

bool has_gates() {
  if (!kHasGates) MESSAGE("skipped: Boost.Context's switch has no gates");
  return kHasGates;
}

TEST_SUITE_BEGIN("fibers/gate");

TEST_CASE("who goes on passes through an open gate, and finds everything as it was") {
  if (!has_gates()) return;
  StackSpace space(&Coroutine::entry);
  Coroutine coroutine(space.take(2, 1));
  REQUIRE(coroutine.stack != nullptr);
  int sum = 0;
  coroutine.body = [&sum](Coroutine& self) {
    double product = 1;
    for (int i = 1; i <= 4; ++i) {
      self.suspend();
      sum += i;
      product *= i;
    }
    sum += static_cast<int>(product);
  };
  coroutine.resume();
  Hung hung;
  while (!coroutine.finished) {
    const Context parked = coroutine.stack->context.load(relaxed);
    hung.in_front_of(*coroutine.stack);
    CHECK(weft::fibers::behind_gate(hung.gate.entrance()) == parked);
    coroutine.resume();
    CHECK(!hung.gate.try_close());
  }
  CHECK(sum == 34);
  space.cool(coroutine.stack);
}

TEST_CASE("who comes to a closed gate waits until it is opened") {
  if (!has_gates()) return;
  StackSpace space(&Coroutine::entry);
  Coroutine coroutine(space.take(2, 1));
  REQUIRE(coroutine.stack != nullptr);
  std::atomic<bool> has_gone_on{false};
  coroutine.body = [&](Coroutine& self) {
    self.suspend();
    has_gone_on = true;
  };
  coroutine.resume();
  Hung hung;
  hung.in_front_of(*coroutine.stack);
  CHECK(hung.gate.try_close());
  std::thread other([&] { coroutine.resume(); });
  // Too short a while only tests less.
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(!has_gone_on);
  hung.gate.open();
  other.join();
  CHECK(has_gone_on);
  space.cool(coroutine.stack);
}

TEST_CASE("a visit to a parked stack finds its calls behind the gate") {
  if (!has_gates()) return;
  if (weft::fibers::kSanitized) {
    MESSAGE("skipped: under a sanitizer parked stacks are not visited");
    return;
  }
  StackSpace space(&Coroutine::entry);
  Coroutine coroutine(space.take(2, 1));
  REQUIRE(coroutine.stack != nullptr);
  coroutine.body = [](Coroutine& self) { self.suspend(); };
  coroutine.resume();
  const std::size_t calls = weft::fibers::backtrace_of(*coroutine.stack).count;
  Hung hung;
  hung.in_front_of(*coroutine.stack);
  // No fewer: what an earlier visit has left is seen, too.
  CHECK(calls > 1);
  CHECK(weft::fibers::backtrace_of(*coroutine.stack).count >= calls);
  // The visit has left a context of its own.
  CHECK(coroutine.stack->context.load(relaxed) != hung.gate.entrance());
  coroutine.resume();
  CHECK(coroutine.finished);
  space.cool(coroutine.stack);
}

TEST_SUITE_END();

}  // namespace

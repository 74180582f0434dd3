// Tests the switch alone, without a scheduler: values, errno and order.
#include <doctest/doctest.h>

#include <cerrno>
#include <memory>
#include <thread>
#include <vector>

#include "tests/fibers/stack_tools.hpp"
#include "tests/support/random.hpp"

namespace {

using weft::fibers::Stack;
using weft::fibers::StackSpace;
using weft::test::Coroutine;

[[gnu::noinline]] int read_errno() {
  asm volatile("" : : : "memory");
  return errno;
}
[[gnu::noinline]] void write_errno(int value) {
  asm volatile("" : : : "memory");
  errno = value;
}

TEST_SUITE_BEGIN("fibers/switch");

TEST_CASE("two stacks can switch back and forth repeatedly") {
  StackSpace space(&Coroutine::entry);
  std::vector<int> trace;
  Coroutine coroutine(space.take(2, 1));
  REQUIRE(coroutine.stack != nullptr);
  coroutine.body = [&](Coroutine& self) {
    for (int i = 0; i < 3; ++i) {
      trace.push_back(10 + i);
      self.suspend();
    }
  };
  for (int i = 0; i < 3; ++i) {
    trace.push_back(i);
    coroutine.resume();
  }
  coroutine.resume();
  CHECK(coroutine.finished);
  CHECK(trace == std::vector<int>{0, 10, 1, 11, 2, 12});
  space.cool(coroutine.stack);
}

TEST_CASE("the action passed to a switch runs once, on the stack that the switch enters") {
  StackSpace space(&Coroutine::entry);
  Coroutine coroutine(space.take(2, 1));
  weft::test::ThreadStack& mine = weft::test::this_thread();
  int runs = 0;
  struct Seen {
    Stack* from;
    bool context_saved = false;
    int times = 0;
  } seen{&mine.stack};
  coroutine.body = [&](Coroutine&) { ++runs; };
  coroutine.resume();
  weft::fibers::switch_to(
      mine.state, mine.stack, *coroutine.stack,
      [](void* argument) noexcept {
        auto& call = *static_cast<Seen*>(argument);
        call.context_saved = call.from->context.load(weft::detail::relaxed) != nullptr;
        ++call.times;
      },
      &seen);
  CHECK(seen.times == 1);
  CHECK(seen.context_saved);
  CHECK(runs == 2);
  space.cool(coroutine.stack);
}

TEST_CASE("errno keeps its value on each stack when a thread switches between stacks") {
  StackSpace space(&Coroutine::entry);
  std::vector<std::unique_ptr<Coroutine>> coroutines;
  weft::test::Random random(1);
  for (int i = 0; i < 10; ++i) {
    auto coroutine = std::make_unique<Coroutine>(space.take(2, 1));
    coroutine->body = [i](Coroutine& self) {
      for (int round = 0; round < 20; ++round) {
        const int mine = 1000 * i + round;
        write_errno(mine);
        self.suspend();
        CHECK(read_errno() == mine);
      }
    };
    coroutines.push_back(std::move(coroutine));
  }
  for (int step = 0; step < 1000; ++step) {
    Coroutine& coroutine = *coroutines[random.below(coroutines.size())];
    if (coroutine.finished) continue;
    write_errno(-step);
    if (random.one_in(2)) {
      coroutine.resume();
      CHECK(read_errno() == -step);
    } else {
      std::thread([&] { coroutine.resume(); }).join();
    }
  }
  for (auto& coroutine : coroutines) {
    while (!coroutine->finished) coroutine->resume();
    space.cool(coroutine->stack);
  }
}

TEST_SUITE_END();

}  // namespace

// Tests that a visit to a parked stack finds the calls of its fiber, and does not change the stack.
#include "fibers/calls/backtrace.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/fibers/stack_tools.hpp"
#include "tests/support/skip.hpp"

namespace weft::test {

// Not static and not inlined, because the test looks for its addresses.
extern "C" [[gnu::noinline, gnu::used]] void weft_test_function_that_parks(Coroutine& coroutine,
                                                                           int depth) {
  // Calls through a volatile pointer, because otherwise the compiler would unroll the recursion.
  void (*volatile again)(Coroutine&, int) = &weft_test_function_that_parks;
  if (depth > 0) again(coroutine, depth - 1);
  if (depth == 0) coroutine.suspend();
  asm volatile("" : : : "memory");
}

}  // namespace weft::test

namespace {

using weft::fibers::Backtrace;
using weft::fibers::kSanitized;
using weft::fibers::StackSpace;
using weft::test::Coroutine;

std::ptrdiff_t calls_of_parking_function(const Backtrace& trace) {
  const auto* start = reinterpret_cast<const char*>(&weft::test::weft_test_function_that_parks);
  return std::count_if(trace.frames.begin(),
                       trace.frames.begin() + static_cast<std::ptrdiff_t>(trace.count),
                       [start](const void* frame) {
                         const char* address = static_cast<const char*>(frame);
                         return address > start && address < start + 1024;
                       });
}

TEST_SUITE_BEGIN("fibers/backtrace");

TEST_CASE(
    "repeated backtraces of a parked stack show its calls, and its fiber continues unharmed") {
  if (kSanitized) return weft::test::skip("sanitized builds make no visits");
  StackSpace space(&Coroutine::entry);
  Coroutine coroutine(space.take(2, 1));
  REQUIRE(coroutine.stack != nullptr);
  int sum = 0;
  coroutine.body = [&sum](Coroutine& self) {
    for (int depth = 0; depth < 5; ++depth) {
      sum += depth;
      weft::test::weft_test_function_that_parks(self, depth);
    }
  };
  std::ptrdiff_t at_first = 0;  // Above 1 if the walk mistakes a neighbour for it.
  for (int depth = 0; depth < 5; ++depth) {
    coroutine.resume();
    for (int i = 0; i < 3; ++i) {
      const Backtrace trace = weft::fibers::backtrace_of(*coroutine.stack);
      if (at_first == 0) at_first = calls_of_parking_function(trace);
      CHECK(at_first > 0);
      CHECK(calls_of_parking_function(trace) == at_first + depth);
      CHECK(trace.count > static_cast<std::size_t>(depth) + 1);
      CHECK(trace.count < Backtrace::kMostFrames);
    }
  }
  CHECK(!coroutine.finished);
  coroutine.resume();
  CHECK(coroutine.finished);
  CHECK(sum == 10);
  space.cool(coroutine.stack);
}

TEST_CASE("a backtrace is empty when the parked stack has no room for the unwinder") {
  StackSpace space(&Coroutine::entry);
  Coroutine coroutine(space.take(0, 1));
  REQUIRE(coroutine.stack != nullptr);
  coroutine.body = [](Coroutine& self) {
    volatile char most_of_it[(10 << 10) + weft::fibers::kInlineBytes];
    most_of_it[0] = 0;
    self.suspend();
    most_of_it[sizeof most_of_it - 1] = most_of_it[0];
  };
  coroutine.resume();
  CHECK(weft::fibers::backtrace_of(*coroutine.stack).count == 0);
  coroutine.resume();
  CHECK(coroutine.finished);
  space.cool(coroutine.stack);
}

TEST_SUITE_END();

}  // namespace

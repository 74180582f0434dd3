// Tests what debuggers and terminate handlers see at the end of a fiber's stack.
#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <unistd.h>
#include <unwind.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <weft/go.hpp>
#include <weft/pool.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "fibers/calls/outermost.hpp"
#include "tests/support/deadlock.hpp"
#include "tests/support/death_test.hpp"
#include "tests/support/fiber_test.hpp"

namespace weft::test {

// A backtrace shows this name: the function is not static, not inlined and not optimized away.
extern "C" [[gnu::noinline, gnu::used, gnu::visibility("default")]] void
weft_test_function_that_throws(int depth) {
  // Calls through a volatile pointer, because otherwise the compiler would unroll the recursion.
  void (*volatile again)(int) = &weft_test_function_that_throws;
  if (depth > 0) again(depth - 1);
  if (depth == 0) throw std::runtime_error("nobody catches this");
  asm volatile("" : : : "memory");
}

}  // namespace weft::test

namespace {

struct Frames {
  int count = 0;
  _Unwind_Reason_Code result = _URC_NO_REASON;
};

// Counts the frames to the outermost one; a runaway unwinder stops at 10 000.
[[gnu::noinline]] Frames count_frames() {
  Frames frames;
  frames.result = _Unwind_Backtrace(
      [](_Unwind_Context*, void* argument) {
        return ++*static_cast<int*>(argument) < 10'000 ? _URC_NO_REASON : _URC_NORMAL_STOP;
      },
      &frames.count);
  return frames;
}

[[gnu::noinline]] Frames count_frames_below(int depth) {
  Frames frames = depth == 0 ? count_frames() : count_frames_below(depth - 1);
  asm volatile("" : : : "memory");
  return frames;
}

// Reports whether the throwing function is still on the stack when terminate is called.
void report_stack_and_abort() {
  void* addresses[64];
  const int count = backtrace(addresses, 64);
  auto* function = reinterpret_cast<char*>(&weft::test::weft_test_function_that_throws);
  int found = 0;
  for (int i = 0; i < count; ++i) {
    auto* address = static_cast<char*>(addresses[i]);
    found += address > function && address < function + 512 ? 1 : 0;
  }
  std::fprintf(stderr, "the throwing function is on the stack %s\n",
               found >= 3 ? "as often as it was called" : "no more");
  std::abort();
}

TEST_SUITE_BEGIN("death/unwind");

FIBER_TEST_CASE("an unwinder stops at the entry function of a fiber") {
  const auto check = [] {
    const Frames shallow = count_frames();
    CHECK(shallow.result == _URC_END_OF_STACK);
    CHECK(shallow.count > 2);
    CHECK(shallow.count < 60);
    const Frames deep = count_frames_below(20);
    CHECK(deep.result == _URC_END_OF_STACK);
    CHECK(deep.count >= shallow.count + 20);
    CHECK(deep.count < shallow.count + 40);
  };
  check();
  // Tests it also on a used stack, and after a switch.
  for (int i = 0; i < 20; ++i) {
    weft::spawn([&] {
      weft::this_fiber::yield();
      check();
    }).join();
  }
}

DEATH_TEST_CASE(
    "an exception in a detached fiber ends the process before the fiber's stack is unwound",
    "the throwing function is on the stack as often as it was called") {
  std::set_terminate(&report_stack_and_abort);
  weft::run([] { weft::go([] { weft::test::weft_test_function_that_throws(4); }); });
}

DEATH_TEST_CASE(
    "an exception in a named fiber ends the process before the fiber's stack is unwound",
    "the throwing function is on the stack as often as it was called") {
  std::set_terminate(&report_stack_and_abort);
  weft::run(
      [] { weft::go({.name = "thrower"}, [] { weft::test::weft_test_function_that_throws(4); }); });
}

DEATH_TEST_CASE(
    "an exception that escapes a child that runs in place does not reach the parent's catch block",
    "the throwing function is on the stack as often as it was called") {
  std::set_terminate(&report_stack_and_abort);
  weft::run({.workers = 1, .monitor = false}, [] {
    try {
      weft::WaitGroup group;
      group.go([] { weft::test::weft_test_function_that_throws(4); });
      group.wait();
    } catch (...) {
      std::fprintf(stderr, "the parent has caught what its child threw\n");
    }
  });
}

#ifdef __x86_64__

// Returns the frame pointer that a called function finds, or that it saves if it has a frame.
[[gnu::noinline]] void* frame_pointer() {
  void* own = nullptr;
  asm volatile("movq %%rbp, %0" : "=r"(own));
  return own;
}

TEST_CASE("the chain of frame pointers ends at a fiber's outermost call") {
  void* found = &found;
  weft::fibers::call_as_outermost(
      [](void* result) {
        void** frame = static_cast<void**>(frame_pointer());
        int frames = 0;
        while (frame != nullptr && ++frames < 5) frame = static_cast<void**>(*frame);
        *static_cast<void**>(result) = frame;
      },
      &found);
  CHECK(found == nullptr);
}

#endif

#ifndef WEFT_TEST_TSAN  // TSan requires a thread to end on its first stack.
DEATH_TEST_CASE("a fiber that calls pthread_exit() ends the process with a report",
                "the thread of a worker ended: a fiber called pthread_exit, or it was cancelled") {
  weft::run({.workers = 2}, [] { weft::go([] { pthread_exit(nullptr); }); });
}

DEATH_TEST_CASE("a joined fiber that calls pthread_exit() ends the process with a report",
                "the thread of a worker ended: a fiber called pthread_exit, or it was cancelled") {
  weft::run({.workers = 2}, [] { weft::spawn([] { pthread_exit(nullptr); }).join(); });
}

DEATH_TEST_CASE("a pool task that calls pthread_exit() ends the process with a report",
                "the thread of a worker ended: a fiber called pthread_exit, or it was cancelled") {
  weft::run({.workers = 2}, [] {
    weft::FiberPool pool({.capacity = 1});
    pool.run([] { pthread_exit(nullptr); });
  });
}
#endif

DEATH_TEST_CASE("the report of an escaped exception shows the exception's message",
                "nobody catches this") {
  weft::run([] { weft::go([] { throw std::runtime_error("nobody catches this"); }); });
}

DEATH_TEST_CASE("an exception thrown by on_exception also ends the process",
                "thrown by the handler") {
  weft::run({.on_exception =
                 [](std::exception_ptr) { throw std::runtime_error("thrown by the handler"); }},
            [] { weft::go([] { throw 1; }); });
}

TEST_SUITE_END();

}  // namespace

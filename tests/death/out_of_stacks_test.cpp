// Tests what happens when the system gives no more stacks: a caller gets the error, or the process
// reports the error and ends.
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/runtime.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/death_test.hpp"
#include "tests/support/fiber_test.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WEFT_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define WEFT_TEST_SANITIZED 1
#endif
#endif

// A sanitizer's own address space exceeds any limit.
#ifndef WEFT_TEST_SANITIZED

namespace {

using namespace std::chrono_literals;

constexpr int kMany = 20'000;

void limit_address_space() {
  const rlimit limit{rlim_t{1'000'000} << 10, rlim_t{1'000'000} << 10};
  if (setrlimit(RLIMIT_AS, &limit) != 0) std::perror("setrlimit");
}

TEST_SUITE_BEGIN("death/out_of_stacks");

// The main thread polls, so the runtime cannot be sure of a deadlock; but no fiber can run.
DEATH_TEST_CASE("the process ends when fibers wait for other fibers that cannot get a stack",
                "'the first' is parked: event") {
  limit_address_space();
  weft::Runtime runtime({.workers = 2});
  weft::Event all_are_there;
  std::atomic<int> started{0};
  weft::go({.name = "the first"}, [&] {
    ++started;
    all_are_there.wait();
  });
  // Newer fibers run before older ones, so the first fiber might get no stack.
  while (started == 0) std::this_thread::sleep_for(1ms);
  for (int i = 0; i < kMany; ++i) {
    runtime.go([&] {
      ++started;
      all_are_there.wait();
    });
  }
  while (started <= kMany) std::this_thread::sleep_for(10ms);
  all_are_there.set();
}

DEATH_TEST_CASE("the report of a stack shortage names the address space limit",
                "(ulimit -v = 1000000 KiB)") {
  limit_address_space();
  weft::Runtime runtime({.workers = 2});
  weft::Event never;
  for (int i = 0; i < kMany; ++i) runtime.go([&] { never.wait(); });
}

TEST_SUITE_END();

}  // namespace

#endif
